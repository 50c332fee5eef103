"""Makes the audit record of each command on a socket: the user of the client, as the system says, and the answer.

A supervisor has no Kafka client: it hands the record to a node.
"""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from awoke.observe.web.listener import Peer
from awoke.swarm import protocol
from awoke.waiting import time as _time

if TYPE_CHECKING:
    from awoke.operate.commands.views import Audit

VERBS = frozenset({"stop", "quiet", "reload", "scale", "dump", "resume", "skip", "stacks"})
"""The commands that are recorded here, beside `ACTS`."""
ACTS = frozenset({"pause", "seek", "retry", "dead_letter"})
"""The commands for a partition that are executed as those of a console."""
ARGUMENTS = ("topic", "partition", "offset", "timestamp_ms", "group", "durable", "nodes", "node")
TEXT_MAX = 1_000
VIA = "socket"


def user_of(peer: Peer | None) -> str:
    """Returns the name of a client's user."""
    if peer is None:
        return "unknown"
    try:
        return pwd.getpwuid(peer.uid).pw_name
    except KeyError:
        return f"uid {peer.uid}"


def reason_of(command: Mapping[str, Any]) -> str:
    """Returns the reason that a command gives; nothing where it gives none."""
    return str(command.get("reason") or "")[:TEXT_MAX]


def arguments_of(command: Mapping[str, Any]) -> protocol.Arguments:
    """Returns the arguments of a command that are of the right kind."""
    given = ((name, command.get(name)) for name in ARGUMENTS)
    return {name: value[:TEXT_MAX] if isinstance(value, str) else value for name, value in given if is_plain(value)}


def is_plain(value: object) -> bool:
    """Tells whether a value may be an argument."""
    return isinstance(value, str | int)


def note_of(
    command: Mapping[str, Any], answer: Mapping[str, Any], peer: Peer | None, pid: int, began_ms: int
) -> protocol.Noted:
    """Returns the record of a command that has been answered."""
    result = next((name for name in ("error", "failed") if name in answer), "done")
    return protocol.Noted(
        supervisor=pid,
        at_ms=began_ms,
        who=user_of(peer),
        verb=str(command.get("command"))[:100],
        arguments=arguments_of(command),
        reason=reason_of(command),
        result=result,
        text=str(answer.get(result, "") if result != "done" else answer.get("text", ""))[:TEXT_MAX],
        took_ms=max(0, now_ms() - began_ms),
    )


def now_ms() -> int:
    """Returns the time, in milliseconds since 1970."""
    return _time.wall_ms()


def audit_of(note: protocol.Noted) -> Audit:
    """Returns the record of a command on the socket of a supervisor; of a process that runs alone without its name."""
    from awoke.operate.commands.views import Audit

    return Audit(
        at_ms=note.at_ms,
        node=f"supervisor {note.supervisor}" if note.supervisor else "",
        app="",
        who=note.who,
        via=VIA,
        verb=note.verb,
        arguments=note.arguments,
        reason=note.reason,
        result=note.result,
        text=note.text,
        took_ms=note.took_ms,
    )
