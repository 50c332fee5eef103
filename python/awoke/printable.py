"""Makes text of others safe to print and to log: no character of it is obeyed by a terminal or begins a line of a log.

Keys, values, headers, error texts, docstrings and names from requests are written by whoever may write to a topic or a
socket. `printable` is for such content, `harmless` for a line that awoke has put together, `harmless_json` for JSON.
"""

from __future__ import annotations

import re
import unicodedata

HARMFUL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that change how others are shown: control, format, surrogate, line separators."""

SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(content: str | bytes | None, keep: str = "") -> str:
    """Returns content as text that no terminal obeys; None as the empty text.

    The escapes are Python's, and a backslash is escaped, too, so that no two contents are shown alike. A byte that is no
    UTF-8 is an `\\x` and its number; a character from U+0080 is never. Characters in `keep` stay as they are.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return harmless(content.replace("\\", "\\\\"), keep)
    text = content.decode(errors="surrogateescape").replace("\\", "\\\\")
    return _LONE_BYTES.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", harmless(text, keep + LONE_BYTES))


def harmless(text: str, keep: str = "") -> str:
    """Returns text without characters that a terminal obeys, but for those in `keep`: each is shown as its escape."""
    if text.isprintable():  # As nearly all text, and none that has harmful characters.
        return text
    return "".join(_escape(each) if is_harmful(each) and each not in keep else each for each in text)


def harmless_json(document: str) -> str:
    """Returns a JSON document with the same meaning that is one line and has no character that a terminal obeys."""
    if document.isprintable():
        return document
    return "".join(_json_escape(each) if is_harmful(each) else each for each in document)


def indented(text: str) -> str:
    """Returns text of several lines, harmless, of which no line but the first begins as a record of a log does."""
    return harmless(text, keep="\n\t").replace("\n", "\n    ")


def shown(value: object) -> str:
    """Returns any object's `repr`, harmless; its type's name where it has none."""
    try:
        return harmless(repr(value))
    except Exception:  # It is user code's, as the object is.
        return f"<{type(value).__qualname__}, whose repr failed>"


def text_of(error: BaseException) -> str:
    """Returns an error's text as it is; its type's name where it has none."""
    try:
        return str(error)
    except Exception:  # It is user code's, as the error is.
        return f"<{type(error).__qualname__}, whose str failed>"


def is_harmful(character: str) -> bool:
    """Tells whether a terminal may obey a character."""
    return unicodedata.category(character) in HARMFUL


LONE_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))
"""What Python decodes bytes to that are no UTF-8 (`surrogateescape`)."""
_LONE_BYTES = re.compile("[\udc80-\udcff]")


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x80:
        return SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    """Returns the escape of a character in a JSON string. Outside of strings JSON has only white space of these."""
    if character in "\t\n\r":
        return " "
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
