"""What a process tells of commands: answers, records in the audit topic, and the nodes of a swarm."""

from __future__ import annotations

import msgspec

MAJOR = 1
"""Raised by a change that earlier readers would misunderstand."""
MINOR = 6
"""Raised by a new field."""


class StackOfThread(msgspec.Struct, kw_only=True):
    """The Python stack of a thread, the innermost call last."""

    name: str
    owner: str
    """The consumer that has started it, the app, or empty."""
    lines: list[str]


class Answer(msgspec.Struct, kw_only=True):
    """The answer of a process to a command."""

    node: str
    verb: str
    text: str
    """The effect, for people."""
    at_ms: int
    took_ms: int
    stacks: list[StackOfThread] = []
    """Of the command `stacks`."""


class Audit(msgspec.Struct, kw_only=True):
    """One command and how it ended."""

    major: int = MAJOR
    minor: int = MINOR
    at_ms: int
    node: str
    app: str
    who: str
    """The person, as the console says."""
    via: str
    """The console that sent it; `socket` for a command of this host."""
    verb: str
    arguments: dict[str, str | int | bool | None]
    reason: str
    result: str
    """`done`, or the code of the error."""
    text: str
    took_ms: int


class SwarmNode(msgspec.Struct, kw_only=True):
    """A node of a swarm, as its supervisor sees it."""

    node: int
    state: str
    restarts: int
    """After failures."""
    last_error: str
    """The reason of the last failure; empty if there was none."""
