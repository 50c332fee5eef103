"""Foreign text made safe to print: which characters are escaped, how, and what stays as it is."""

from __future__ import annotations

import json

import pytest

from awoke.text.printable import harmless, harmless_json, indented, is_harmful, printable, shown, text_of


@pytest.mark.parametrize(
    "text", ["", "plain [/x] text", "caf\u00e9 \u65e5\u672c \U0001f600", "two words", "\u0301combining"]
)
def test_text_of_people_stays_as_it_is(text: str) -> None:
    assert printable(text) == printable(text.encode()) == harmless(text) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\r\n\t", r"\r\n\t"),
        ("\x00\x7f", r"\x00\x7f"),
        ("\u202eevil", r"\u202eevil"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\x9b", r"\u009b"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
    ],
)
def test_a_character_that_controls_the_terminal_is_shown_as_its_escape(text: str, escaped: str) -> None:
    assert harmless(text) == printable(text) == escaped
    assert any(map(is_harmful, text))
    assert escaped.isprintable()


def test_a_byte_that_is_no_utf_8_differs_from_a_character_and_from_its_own_escape() -> None:
    assert printable(b"\xff") == r"\xff"
    assert printable(rb"\xff") == r"\\xff"
    assert printable("\u00ff") == "\u00ff"
    assert printable("\x9b".encode()) == r"\u009b"
    assert printable(b"\xff\x00 C:\\n") == r"\xff\x00 C:\\n"


def test_no_content_is_the_empty_text() -> None:
    assert printable(None) == printable(b"") == ""


def test_characters_may_be_kept() -> None:
    assert printable("a\tb\nc\r", keep="\n\t") == "a\tb\nc\\r"
    assert printable(b"a\tb\xff", keep="\t") == "a\tb\\xff"
    assert harmless("a\tb\x1b", keep="\t") == "a\tb\\x1b"


def test_a_line_of_awokes_own_may_have_backslashes() -> None:
    assert harmless("C:\\new\x1b") == "C:\\new\\x1b"


def test_json_means_the_same_on_one_line() -> None:
    document = {"a\u2028": ["\x7f", "\u202e", "\U000e0041", "caf\u00e9"], "b": "\x9b"}
    text = harmless_json(json.dumps(document, ensure_ascii=False, indent=2))
    assert text.isprintable()
    assert json.loads(text) == document
    assert harmless_json('{"a": 1}') == '{"a": 1}'


def test_further_lines_are_indented() -> None:
    assert indented("Traceback\n  line\x1b\n") == "Traceback\n      line\\x1b\n    "


class Broken(Exception):
    """User code whose texts fail."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


def test_an_object_whose_text_fails_is_named_by_its_type() -> None:
    assert shown("a\x1b") == r"'a\x1b'"
    assert shown(Broken()) == "<Broken, whose repr failed>"
    assert text_of(Broken()) == "<Broken, whose str failed>"
    assert text_of(ValueError("lone \ud800")) == "lone \ud800"
