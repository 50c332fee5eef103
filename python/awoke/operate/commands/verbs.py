"""The commands that a console can send to a process, and the check of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from awoke.rpc.errors import InvalidArgument
from awoke.settings.fields import COMMANDS

TOPIC_MAX = 249
GROUP_MAX = 1_000
TEXT_MAX = 1_000
"""The most characters of a reason, and of a person's name."""
NODES_MAX = 1_000
INT_MAX = (1 << 63) - 1
BOUNDS: Mapping[str, tuple[int, int]] = {
    "partition": (0, (1 << 31) - 1),
    "offset": (-2, INT_MAX),
    "timestamp_ms": (0, INT_MAX),
    "nodes": (1, NODES_MAX),
}
"""The least and the most of each number."""

Value = str | int | bool | None


class Verb(msgspec.Struct, frozen=True):
    """One command."""

    name: str
    doc: str
    """Its effect, in one sentence."""
    fields: tuple[str, ...] = ()
    """Its arguments."""
    optional: tuple[str, ...] = ()
    """Those of them that may be left out."""
    is_destructive: bool = False
    """True if it can't be undone, or if it interrupts the work of a process."""


PLACE, GROUP = ("topic", "partition"), ("group",)

VERBS: Mapping[str, Verb] = {
    each.name: each
    for each in (
        Verb("quiet", "Begins no new jobs; a reload, or a new process, ends that."),
        Verb("stop", "Stops the process in order; in a swarm, the whole swarm.", is_destructive=True),
        Verb("reload", "Imports the app again and replaces the nodes of the swarm one by one.", is_destructive=True),
        Verb("scale", "Changes the number of nodes of the swarm.", ("nodes",), is_destructive=True),
        Verb("stacks", "Shows the Python stacks of all threads."),
        Verb("pause", "Begins no new jobs of a partition.", (*PLACE, "group", "durable"), ("group", "durable")),
        Verb("resume", "Continues a partition that is paused or stuck.", (*PLACE, "group"), GROUP),
        Verb(
            "seek",
            "Continues a partition from another offset, or from a time.",
            (*PLACE, "offset", "timestamp_ms", "group"),
            ("offset", "timestamp_ms", "group"),
            is_destructive=True,
        ),
        Verb("skip", "Skips a failing message.", (*PLACE, "offset", "group"), GROUP, is_destructive=True),
        Verb("retry", "Tries failing messages again at once.", (*PLACE, "offset", "group"), ("offset", "group")),
        Verb(
            "dead_letter",
            "Sends a failing message to the dead letter topic.",
            (*PLACE, "offset", "group"),
            GROUP,
            is_destructive=True,
        ),
    )
}
"""The commands by name, in the order of the setting's names."""
assert tuple(VERBS) == COMMANDS


def checked(verb: str, arguments: Mapping[str, Any]) -> dict[str, Value]:
    """Returns the arguments of a command that are given.

    Raises:
        InvalidArgument: The command does not exist; an argument is missing, unknown or of a wrong kind.
    """
    known = VERBS.get(verb)
    if known is None:
        raise InvalidArgument(f"there is no command {verb[:TEXT_MAX]!r}; there are {', '.join(VERBS)}")
    given = {name: value for name, value in arguments.items() if value is not None}
    if unknown := sorted(set(given) - set(known.fields)):
        raise InvalidArgument(f"{verb} has no argument {unknown[0][:TEXT_MAX]!r}; it has {', '.join(known.fields)}")
    if missing := [each for each in known.fields if each not in given and each not in known.optional]:
        raise InvalidArgument(f"{verb} needs the argument {missing[0]!r}")
    if verb == "seek" and ("offset" in given) == ("timestamp_ms" in given):
        raise InvalidArgument("seek needs an offset or a time, and not both")
    for name, value in given.items():
        _check(name, value, least=0 if name == "offset" and verb != "seek" else None)
    return given


def _check(name: str, value: Any, least: int | None) -> None:
    if name in BOUNDS:
        first, last = BOUNDS[name]
        first = first if least is None else least
        is_right = isinstance(value, int) and not isinstance(value, bool) and first <= value <= last
        wanted = f"a whole number from {first} to {last}"
    elif name == "durable":
        is_right, wanted = isinstance(value, bool), "true or false"
    else:
        most = TOPIC_MAX if name == "topic" else GROUP_MAX
        is_right, wanted = isinstance(value, str) and 0 < len(value) <= most, f"a text of 1 to {most} characters"
    if not is_right:
        raise InvalidArgument(f"{name} must be {wanted}, not {str(value)[:TEXT_MAX]!r}")


def checked_text(name: str, text: str, *, least: int = 1) -> str:
    """Returns a text of a person without white space around it.

    Raises:
        InvalidArgument: It is empty, too long, or no text.
    """
    text = text.strip() if isinstance(text, str) else ""
    if not least <= len(text) <= TEXT_MAX:
        raise InvalidArgument(f"{name} must be a text of {least} to {TEXT_MAX} characters")
    return text
