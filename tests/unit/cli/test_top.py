"""`awoke top`: keys of a terminal, and the screen."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from typer.testing import CliRunner

from awoke.cli.main import command_line
from awoke.cli.top import drawn, keys_of
from awoke.console.top import Top
from tests.unit.console.test_top import view
from tests.unit.console.web.fakes import hostile


def test_keys_have_names_and_unknown_ones_mean_nothing() -> None:
    assert keys_of(b"\x1b[A") == ["up"]
    assert keys_of(b"\x1b") == ["escape"]
    assert keys_of(b"ab\r") == ["a", "b", "enter"]
    assert keys_of(b"\x1b[99~") == []


def test_the_screen_shows_the_table_and_no_control_character_of_a_message() -> None:
    top = Top(view())
    top.press("4")
    written = io.StringIO()
    Console(file=written, width=200, height=40).print(drawn(top, 40))
    text = written.getvalue()
    assert "orders" in text
    assert "bad\\x1b[2J" in text
    assert "\x1b" not in text


def test_it_needs_a_terminal() -> None:
    done = CliRunner().invoke(command_line(["top"]), ["top", "shop"])
    assert "needs a terminal" in str(done.exception)


@pytest.mark.parametrize("key", "123456")
def test_hostile_text_is_harmless_in_each_table(key: str) -> None:
    top = Top(hostile().snapshot().view)
    top.press(key)
    written = io.StringIO()
    Console(file=written, width=400, height=40).print(drawn(top, 40))
    text = written.getvalue()
    assert "\\x1b[31m" in text or "alert" not in text
    assert not {"\x1b", "\u202e"} & set(text)
