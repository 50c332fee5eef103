"""`awoke act`: a command with its arguments and its reason, on the socket of a process."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from awoke.cli import act
from awoke.cli.main import command_line
from awoke.errors import ConfigError


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Any, list[Any]]:
    asked = list[Any]()

    def ask(target: str, socket: str | None, verb: str, **fields: Any) -> dict[str, Any]:
        asked.append((target, verb, fields))
        if verb == "stacks":
            stacks = [{"node": 2, "owner": "shop", "name": "worker\x1b", "lines": ["a.py:1 in f", "b.py:2 in g"]}]
            return {"done": verb, "text": "1 threads", "stacks": stacks}
        return {"done": verb, "text": "the effect"} if verb == "pause" else {"done": verb}

    monkeypatch.setattr(act, "ask", ask)
    return CliRunner().invoke(command_line(["act"]), ["act", "shop:app", *words]), asked


def test_arguments_have_their_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("pause", "topic=7", "partition=3", "durable=true", "--reason", "a test")
    done, asked = run(monkeypatch, *words)
    assert (done.exit_code, done.output) == (0, "the effect\n")
    fields = {"topic": "7", "partition": 3, "durable": True, "reason": "a test"}
    assert asked == [("shop:app", "pause", fields)]
    assert run(monkeypatch, "stop", "--reason", "a test")[0].output == "stop is done\n"


def test_success_is_quiet_if_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "stop", "--reason", "a test", "--quiet")[0].output == ""


def test_stacks_are_shown_thread_by_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    done, asked = run(monkeypatch, "stacks", "--reason", "it hangs")
    assert asked == [("shop:app", "stacks", {"reason": "it hangs"})]
    lines = ["1 threads", "", r"node 2 · shop · worker\x1b", "  a.py:1 in f", "  b.py:2 in g"]
    assert done.output.splitlines() == lines


@pytest.mark.parametrize(
    "words",
    [
        ("stop",),
        ("stop", "--reason", " "),
        *(
            (*each, "--reason", "x")
            for each in (
                ("pause", "topic"),
                ("pause", "=1"),
                ("pause", "topic=t", "partition=x"),
                ("pause", "topic=t", "partition=0", "command=stop"),
                ("explode",),
            )
        ),
    ],
)
def test_what_is_wrong_is_not_sent(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    done, asked = run(monkeypatch, *words)
    assert isinstance(done.exception, ConfigError)
    assert asked == []
