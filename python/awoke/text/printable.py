"""Makes foreign text safe to print and to log: no character of it controls a terminal or begins a new line of a log.

Any client that may write to a topic or a socket chooses keys, values, headers, error texts, docstrings and names.
`printable` is for such content, `harmless` for a line that awoke has put together, `harmless_json` for JSON.
"""

from __future__ import annotations

import re
import unicodedata

HARMFUL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that change the display of others: control, format, surrogate, separators."""

TEXT_MAX = 8_000
"""The most characters of one value, or of the text of one error, that are shown to people."""

SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(content: str | bytes | None, keep: str = "") -> str:
    """Returns content as text without control characters; `None` as the empty text.

    The escapes are Python's. A backslash is escaped, too, so that different contents look different. A byte that is no
    UTF-8 is shown as `\\x` and its number, a character from U+0080 never. Characters in `keep` stay as they are.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return harmless(content.replace("\\", "\\\\"), keep)
    text = content.decode(errors="surrogateescape").replace("\\", "\\\\")
    return _LONE_BYTES.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", harmless(text, keep + LONE_BYTES))


def harmless(text: str, keep: str = "") -> str:
    """Returns text with each control character, except those in `keep`, replaced by its escape."""
    if text.isprintable():  # Nearly all text is, and no text with a harmful character.
        return text
    return "".join(_escape(each) if is_harmful(each) and each not in keep else each for each in text)


def harmless_json(document: str) -> str:
    """Returns a JSON document of the same meaning, on one line and without control characters."""
    if document.isprintable():
        return document
    return "".join(_json_escape(each) if is_harmful(each) else each for each in document)


def indented(text: str) -> str:
    """Returns harmless text of several lines, indented after the first so that none looks like a log record."""
    return harmless(text, keep="\n\t").replace("\n", "\n    ")


def bounded(text: str, most: int = TEXT_MAX) -> str:
    """Returns text of at most about `most` characters: of longer text, its begin and its end, and how much is missing.

    A log line, a report and a terminal are for people. The content of a message may have any size.
    """
    if len(text) <= most:
        return text
    begin, end = most * 3 // 4, most // 4
    return f"{text[:begin]}… ({len(text) - begin - end:,} characters left out) …{text[-end:]}"


def shown(value: object) -> str:
    """Returns the harmless `repr` of any object, `bounded`; the name of its type if its `repr` fails."""
    try:
        return harmless(bounded(repr(value)))
    except BaseException:  # `__repr__` may be user code.
        return f"<{type(value).__qualname__}, whose repr failed>"


def text_of(error: BaseException) -> str:
    """Returns the text of an error, `bounded`; the name of its type if its `str` fails."""
    try:
        return bounded(str(error))
    except BaseException:  # `__str__` may be user code.
        return f"<{type(error).__qualname__}, whose str failed>"


def is_harmful(character: str) -> bool:
    """Returns whether a character may control a terminal."""
    return unicodedata.category(character) in HARMFUL


LONE_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))
"""The characters to which Python decodes bytes that are no UTF-8 (`surrogateescape`)."""
_LONE_BYTES = re.compile("[\udc80-\udcff]")


def is_of_other_bytes(text: str) -> bool:
    """Returns whether a text of the environment or the command line holds bytes that are no UTF-8."""
    return _LONE_BYTES.search(text) is not None


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x80:
        return SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    """Returns the escape of a character in a JSON string. Outside of strings, JSON has white space only."""
    if character in "\t\n\r":
        return " "
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
