"""Commands and results on a socket: one JSON object on one line."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest

import awoke
from awoke.observe.web.listener import Peer
from awoke.operate.commands import lines
from awoke.operate.commands.views import CommandResult, OperatorCommand, StackOfThread


def test_a_command_has_the_user_of_its_client() -> None:
    line = b'{"command": "skip", "reason": "it is bad", "topic": "t", "offset": 7}\n'
    user = pwd.getpwuid(os.getuid()).pw_name
    assert lines.command_of(line, Peer(1, os.getuid()), "shop:app") == OperatorCommand(
        verb="skip", arguments={"topic": "t", "offset": 7}, who=user, via="socket", reason="it is bad"
    )


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"null", b"{", b"[" * 60_000, b'{"command": "\xff"}', b"{}", b'{"command": []}', b'{"command": "no"}'],
)
def test_what_is_not_a_command_is_refused(line: bytes) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        lines.command_of(line, None, "shop:app")
    assert refused.value.property == "command"


@pytest.mark.parametrize("reason", [None, 7, ["x"], "x" * 5_000])
def test_any_reason_is_shortened(reason: Any) -> None:
    line = lines.encoded({"command": "quiet", "reason": reason})
    assert len(lines.command_of(line, None, "shop:app").reason) <= 1_000


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (CommandResult(verb="quiet", node="host.1", at_ms=5), b'{"done":"quiet"}\n'),
        (CommandResult(verb="skip", text="a\nb"), b'{"done":"skip","text":"a\\nb"}\n'),
        (CommandResult(verb="skip", result="not_found", text="no group"), b'{"error":"no group"}\n'),
        (CommandResult(verb="skip", result="unavailable", text="no brokers"), b'{"failed":"no brokers"}\n'),
        (CommandResult(verb="status", status={"pid": 7}), b'{"done":"status","pid":7}\n'),
        (
            CommandResult(verb="stacks", stacks=[StackOfThread(name="n", owner="", lines=["a"], node=2)]),
            b'{"done":"stacks","stacks":[{"name":"n","owner":"","lines":["a"],"node":2}]}\n',
        ),
    ],
)
def test_a_result_is_one_line(result: CommandResult, line: bytes) -> None:
    assert lines.line_of(result) == line


def test_what_other_programs_have_written_is_harmless() -> None:
    assert lines.json_of({"name": "a\u009bb"}) == b'{"name":"a\\u009bb"}'
