"""The record of a command on a socket: its user, its arguments, and how it ended."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest

from awoke.observe.web.listener import Peer
from awoke.swarm import audited


def test_a_user_is_named_by_the_system() -> None:
    assert audited.user_of(Peer(1, os.getuid())) == pwd.getpwuid(os.getuid()).pw_name
    assert audited.user_of(Peer(1, 4_000_000_000)) == "uid 4000000000"
    assert audited.user_of(None) == "unknown"


@pytest.mark.parametrize(
    ("answer", "result", "text"),
    [
        ({"done": "scale"}, "done", ""),
        ({"done": "pause", "text": "paused"}, "done", "paused"),
        ({"failed": "no node is up"}, "failed", "no node is up"),
        ({"error": "x" * 5_000}, "error", "x" * 1_000),
    ],
)
def test_a_record_has_the_result(answer: dict[str, Any], result: str, text: str) -> None:
    command = {"command": "scale", "nodes": 3, "topic": ["wrong"], "more": 1, "group": "g" * 5_000, "reason": "why"}
    note = audited.note_of(command, answer, None, 7, audited.now_ms())
    assert note.arguments == {"nodes": 3, "group": "g" * 1_000}
    audit = audited.audit_of(note)
    assert (audit.node, audit.verb, audit.result, audit.text, audit.reason) == (
        "supervisor 7",
        "scale",
        result,
        text,
        "why",
    )
    assert audit.took_ms >= 0
