"""What travels: a command, its result, its record in the audit topic, and the nodes of a swarm.

A supervisor, which has no Kafka client, uses them too. Records in Kafka have a version.
"""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.text.records import Integer, Moment, Name, Text

MAJOR = 1
"""Raised by a change that earlier readers would misunderstand."""
MINOR = 9
"""Raised by a new field."""
DONE = "done"
"""The result of a command that had its effect. Others are gRPC's codes, as those of `awoke.rpc.errors`."""
WRONG = frozenset({"invalid_argument", "not_found", "unimplemented"})
"""The results of a command that is wrong, whatever the state of the process. The other ones had no effect now."""


class OperatorCommand(msgspec.Struct, kw_only=True, frozen=True):
    """A verb that someone sends to a process. Its arguments are not checked yet."""

    verb: str
    arguments: dict[str, Any] = {}
    who: str
    """The person: as the console says, or the user of the client on this host."""
    via: str
    """The console that sent it; `socket` for a command of this host."""
    reason: str = ""


class StackOfThread(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The Python stack of a thread, the innermost call last."""

    name: str
    owner: str
    """The consumer that has started it, the app, or empty."""
    lines: list[str]
    node: int | None = None
    """The node of a swarm, where several were asked."""


class StartedThread(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A thread that is alive."""

    owner: str
    name: str
    started_at: str
    """The file, line and function that started it."""
    node: int | None = None
    """The node of a swarm, where several were asked."""


class CommandResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a command ended."""

    verb: str
    result: str = DONE
    """`done`, or the code of the error."""
    text: str = ""
    """The effect, or the reason why there is none, for people."""
    is_here: bool = True
    """False: the partition is not assigned to the process."""
    node: str = ""
    """The process, as its reports name it."""
    at_ms: int = 0
    took_ms: int = 0
    stacks: list[StackOfThread] = []
    threads: list[StartedThread] = []
    status: dict[str, Any] = {}
    """The state of a swarm."""


class Audit(msgspec.Struct, kw_only=True):
    """One command and how it ended."""

    major: Integer = MAJOR
    minor: Integer = MINOR
    at_ms: Moment
    node: Name
    app: Name
    who: Name
    """The person, as the console says."""
    via: Name
    """The console that sent it; `socket` for a command of this host."""
    verb: Name
    arguments: dict[str, str | Integer | bool | None]
    reason: Text
    result: Name
    """`done`, or the code of the error."""
    text: Text
    took_ms: Integer


class SwarmNode(msgspec.Struct, kw_only=True):
    """A node of a swarm, as its supervisor sees it."""

    node: int
    state: str
    restarts: int
    """After failures."""
    last_error: str
