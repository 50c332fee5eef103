"""The record of a command in the audit topic: who has sent it, as the system says on a socket, and how it ended."""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from typing import Any

from awoke.observe.web.listener import Peer
from awoke.operate.commands.verbs import PARAMETERS, TEXT_MAX, VERBS
from awoke.operate.commands.views import Audit, CommandResult, OperatorCommand

VERB_MAX = 100
"""The most characters of a verb that does not exist."""


def user_of(peer: Peer | None) -> str:
    """Returns the name of a client's user."""
    return "unknown" if peer is None else name_of(peer.uid)


def name_of(uid: int) -> str:
    """Returns the name of a user. In a container a user often has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def is_recorded(verb: str) -> bool:
    """Tells whether a command leaves a record. One that does not exist leaves one, too."""
    return verb not in VERBS or VERBS[verb].is_recorded


def audit_of(command: OperatorCommand, result: CommandResult, app: str = "") -> Audit:
    """Returns the record of a command that has ended. A command that was refused may have any arguments."""
    return Audit(
        at_ms=result.at_ms,
        node=result.node,
        app=app,
        who=command.who[:TEXT_MAX],
        via=command.via[:TEXT_MAX],
        verb=command.verb[:VERB_MAX],
        arguments=plain(command.arguments),
        reason=command.reason[:TEXT_MAX],
        result=result.result,
        text=result.text[:TEXT_MAX],
        took_ms=result.took_ms,
    )


def plain(arguments: Mapping[str, Any]) -> dict[str, str | int | bool | None]:
    """Returns the arguments that verbs have, and that are of a kind that they take; long ones are shortened."""
    given = {name: value for name, value in arguments.items() if name in PARAMETERS and isinstance(value, str | int)}
    return {name: value[:TEXT_MAX] if isinstance(value, str) else value for name, value in given.items()}
