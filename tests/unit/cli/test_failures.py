"""Errors at the command line: one line each, and the exit codes of commands and of `awoke run`."""

from __future__ import annotations

import sys

import pytest

from awoke.cli.failures import code_of, code_of_run, show
from awoke.errors import AwokeError, BrokerUnreachable, ConfigError, UnknownTopic

UNKNOWN = UnknownTopic("no topic", 3, "UNKNOWN_TOPIC_OR_PART")
UNREACHABLE = BrokerUnreachable("no broker", -195, "_TRANSPORT")


@pytest.mark.parametrize(
    ("error", "of_command", "of_run"),
    [
        (ConfigError("wrong", "workers"), 2, 78),
        (UNKNOWN, 1, 78),
        (UNREACHABLE, 1, 1),
        (AwokeError("no"), 1, 1),
    ],
)
def test_a_supervisor_learns_whether_another_start_would_fail_the_same_way(
    error: AwokeError, of_command: int, of_run: int
) -> None:
    assert (code_of(error), code_of_run(error)) == (of_command, of_run)


def test_an_error_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    show(AwokeError("first\nsecond\x1b[31m [red]third"))
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "error: first second\\x1b[31m [red]third\n")


def test_the_page_of_an_error_is_named_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    show(UNKNOWN)
    assert capsys.readouterr().err == "error: no topic\nwhat to do: awoke docs errors/UnknownTopic\n"


def test_a_traceback_comes_before_the_line_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["awoke", "--traceback", "tail"])
    try:
        raise AwokeError("no good")
    except AwokeError as error:
        show(error)
    written = capsys.readouterr().err
    assert written.startswith("Traceback (most recent call last):\n")
    assert 'raise AwokeError("no good")\n' in written
    assert written.endswith("error: no good\n")
