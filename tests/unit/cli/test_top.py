"""`awoke top`: keys of a terminal, and the screen."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from awoke.cli.main import command_line
from awoke.cli.top import Screen, drawn, keys_of
from awoke.console.top import ACTIONS, CELL_MAX, Top, TopCommand
from awoke.console.views import AppView
from awoke.errors import AwokeError
from awoke.rpc.errors import FailedPrecondition
from tests.support.terminals import Terminal, terminal
from tests.unit.console.test_top import failing_view, view
from tests.unit.console.web.fakes import hostile


def test_keys_have_names_and_unknown_ones_mean_nothing() -> None:
    assert keys_of("\x1b[A") == ["up"]
    assert keys_of("\x1b") == ["escape"]
    assert keys_of("ab\r") == ["a", "b", "enter"]
    assert keys_of("\x1b[99~") == []


def test_keys_that_come_at_once_are_all_taken() -> None:
    assert keys_of("\x1b[B\x1b[B\x1bOA4\x1b[99~\r") == ["down", "down", "up", "4", "enter"]


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


HUGE = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e\ufffd" + "k" * 1_000_000
"""Hostile text of a megabyte: sequences of a terminal, and what invalid UTF-8 becomes."""


@pytest.mark.parametrize("key", ["1", "4"])
def test_keys_of_a_megabyte_are_shown_cut_and_harmless(key: str) -> None:
    top = Top(failing_view(HUGE))
    top.press(key)
    assert max(len(cell) for each in top.rows() for cell in each.cells) < 2 * CELL_MAX
    written = io.StringIO()
    Console(file=written, width=120, height=40).print(drawn(top, 40))
    text = written.getvalue()
    assert "\\x1b]0;pwned" in text
    assert len(text) < 120 * 60
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)


class Shown:
    """A screen in a terminal of a test, with the commands that it has sent."""

    def __init__(self, of: Terminal, first: AppView) -> None:
        self.terminal, self.sent = of, list[TopCommand]()
        self.answer: str | AwokeError = "it is done"
        self.views: list[AppView | AwokeError] = []
        """The states that are read from now on, the last one again and again."""
        self._first = first

    def read(self) -> AppView:
        found = (self.views.pop(0) if len(self.views) > 1 else self.views[0]) if self.views else self._first
        if isinstance(found, AwokeError):
            raise found
        return found

    def send(self, command: TopCommand) -> str:
        self.sent.append(command)
        if isinstance(self.answer, AwokeError):
            raise self.answer
        return self.answer


@contextlib.contextmanager
def screen(monkeypatch: pytest.MonkeyPatch, first: AppView) -> Iterator[Shown]:
    """Shows a state in a terminal until the end of a block, which `q` ends."""
    with terminal() as of, open(of.file, closefd=False) as typed, open(of.file, "w", closefd=False) as written:
        monkeypatch.setattr("sys.stdin", typed)
        monkeypatch.setattr("sys.stdout", written)
        for name, value in (("TERM", "xterm"), ("COLUMNS", "200"), ("LINES", "50")):
            monkeypatch.setenv(name, value)
        shown = Shown(of, first)
        running = threading.Thread(target=Screen(Top(first), shown.read, shown.send, 0.05).run)
        running.start()
        try:
            of.wait_shown("q quit")
            yield shown
        finally:
            of.type("\x1b")
            of.type("q")
            running.join(60)
        assert not running.is_alive()
        for each in threading.enumerate():
            if each.name == "awoke-top":  # A program does not wait for its last look at the brokers.
                each.join(60)


@pytest.mark.parametrize(("key", "verb"), ACTIONS.items())
def test_a_key_asks_for_a_reason_sends_the_command_and_shows_the_answer(
    key: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with screen(monkeypatch, view()) as shown:
        shown.terminal.type("4")
        shown.terminal.wait_shown("again in")
        shown.terminal.type(key)
        shown.terminal.wait_shown(f"{verb}: reason (Enter sends, Esc leaves)")
        shown.terminal.type("\r")
        shown.terminal.wait_shown("reason")
        assert shown.sent == [], "without a reason nothing is sent"
        shown.terminal.type("the bänk is down")
        shown.terminal.wait_shown("down▏")
        shown.terminal.type("\r")
        shown.terminal.wait_shown("it is done")
    (sent,) = shown.sent
    assert (sent.node, sent.verb, sent.reason) == ("host.1", verb, "the bänk is down")
    of_partition = {"topic": "orders", "partition": 0, "group": "eu"}
    of_message = {**of_partition, "offset": 5}
    of_verb = {"stop": {}, "skip": of_message, "dead_letter": of_message}
    assert sent.arguments == of_verb.get(verb, of_partition)


def test_a_command_is_not_sent_after_escape_and_an_error_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch, view()) as shown:
        shown.answer = FailedPrecondition("orders[0] offset 5 does not fail\x1b[2J")
        shown.terminal.type("4")
        shown.terminal.wait_shown("again in")
        shown.terminal.type("x")
        shown.terminal.wait_shown("reason")
        shown.terminal.type("no")
        shown.terminal.wait_shown("no▏")
        shown.terminal.type("\x1b")
        shown.terminal.wait_shown("q quit")
        assert shown.sent == []
        shown.terminal.type("xwhy\r")
        shown.terminal.wait_shown("skip failed: orders[0] offset 5 does not fail\\x1b[2J")
    assert [each.verb for each in shown.sent] == ["skip"]
    assert b"fail\x1b[2J" not in shown.terminal.drawn


def test_a_new_state_and_a_failure_to_read_one_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch, view()) as shown:
        shown.views = [msgspec.structs.replace(view(), app="another")]
        shown.terminal.wait_shown("another: 1 rows")
        shown.views = [AwokeError("the brokers are away\x1b]0;pwned\x07")]
        shown.terminal.wait_shown("the state can't be read: the brokers are away")
    assert b"pwned\x07" not in shown.terminal.drawn


def test_hostile_text_reaches_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch, failing_view(HUGE)) as shown:
        for key in "123456":
            shown.terminal.type(key)
            shown.terminal.wait_shown("q quit")
        shown.terminal.type(b"/\xff\xc3")
        shown.terminal.wait_shown("filter: \ufffd")
        shown.terminal.type(b"\xa4")
        shown.terminal.wait_shown("\ufffdä▏")
        shown.terminal.type("\r")
        shown.terminal.wait_shown("0 rows")
    for harmful in (b"\x1b]", b"\x07", b"\xc2\x9b", "\u202e".encode()):
        assert harmful not in shown.terminal.drawn
