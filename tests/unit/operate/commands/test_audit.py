"""The record of a command: its user, its arguments, and how it ended."""

from __future__ import annotations

import os
import pwd
from typing import Any

from awoke.observe.web.listener import Peer
from awoke.operate.commands.audit import audit_of, is_recorded, user_of
from awoke.operate.commands.views import CommandResult, OperatorCommand


def test_a_user_is_named_by_the_system() -> None:
    assert user_of(Peer(1, os.getuid())) == pwd.getpwuid(os.getuid()).pw_name
    assert user_of(Peer(1, 4_000_000_000)) == "uid 4000000000"
    assert user_of(None) == "unknown"


def test_a_record_has_the_command_and_its_result() -> None:
    command = OperatorCommand(verb="scale", arguments={"nodes": 3}, who="ann", via="socket", reason="more work")
    result = CommandResult(verb="scale", text="it goes to 3 nodes", node="supervisor 7", at_ms=5, took_ms=2)
    found = audit_of(command, result, "shop")
    assert (found.at_ms, found.took_ms, found.node, found.app) == (5, 2, "supervisor 7", "shop")
    assert (found.who, found.via, found.reason) == ("ann", "socket", "more work")
    assert (found.verb, found.arguments, found.result, found.text) == ("scale", {"nodes": 3}, "done", result.text)


def test_what_a_refused_command_holds_is_shortened_or_left_out() -> None:
    long = "x" * 5_000
    arguments: dict[str, Any] = {"nodes": 3, "topic": ["wrong"], "more": 1, long: 1, "group": long, "offset": None}
    command = OperatorCommand(verb=long, arguments=arguments, who=long, via=long, reason=long)
    found = audit_of(command, CommandResult(verb=long, result="invalid_argument", text=long))
    assert found.arguments == {"nodes": 3, "group": long[:1_000]}
    assert found.verb == long[:100]
    assert {len(text) for text in (found.who, found.via, found.reason, found.text)} == {1_000}


def test_commands_that_only_look_leave_no_record() -> None:
    verbs = ("status", "threads", "stacks", "dump", "skip", "explode")
    assert [verb for verb in verbs if not is_recorded(verb)] == ["status", "threads"]
