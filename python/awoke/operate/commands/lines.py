"""Commands and their results on a UNIX socket: one JSON object on one line.

A command is `{"command": "skip", "target": "shop:app", "reason": "…", …}`, with its arguments beside these three. Its
answer has one of the fields `done`, the verb; `error`, the reason why the command is wrong; or `failed`, the reason why
it had no effect.
"""

from __future__ import annotations

import reprlib
from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.observe.web.listener import Peer
from awoke.operate.commands.audit import user_of
from awoke.operate.commands.verbs import TEXT_MAX, verb_of
from awoke.operate.commands.views import DONE, WRONG, CommandResult, OperatorCommand
from awoke.text.printable import harmless_json
from awoke.text.records import encode

VIA = "socket"
FIELDS = ("verb", "result", "is_here", "node", "at_ms", "took_ms", "status")
"""Those of a result that the audit has, or that have another place in the line."""


def encoded(document: dict[str, Any]) -> bytes:
    """Returns a document as one line."""
    return json_of(document) + b"\n"


def json_of(document: Any) -> bytes:
    """Returns a document as JSON that is safe to print: other programs write the names and error texts in it."""
    return harmless_json(encode(document).decode()).encode()


def decoded(line: bytes) -> dict[str, Any]:
    """Returns the object of a line.

    Raises:
        ConfigError: It is not a JSON object.
    """
    try:
        found: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"the command is not a JSON object: {error}", "command") from None
    return found


def command_of(line: bytes, peer: Peer | None, target: str) -> OperatorCommand:
    """Returns the command of a client to the app of this name. Its verb exists; its arguments are not checked.

    Raises:
        ConfigError: The line is not a command, or it is one to another app.
    """
    found = decoded(line)
    wanted = found.pop("target", target)
    if isinstance(wanted, str) and ":" in wanted and wanted != target:
        raise ConfigError(f"{target} listens here, and not {reprlib.repr(wanted)}: nothing was done", "target")
    name = found.pop("command", None)
    verb = verb_of(name if isinstance(name, str) else repr(name)[:100])
    reason = str(found.pop("reason", None) or "")[:TEXT_MAX]
    return OperatorCommand(verb=verb.name, arguments=found, who=user_of(peer), via=VIA, reason=reason)


def line_of(result: CommandResult) -> bytes:
    """Returns the line of a result."""
    if result.result != DONE:
        return encoded({"error" if result.result in WRONG else "failed": result.text})
    more = {name: value for name, value in msgspec.to_builtins(result).items() if name not in FIELDS}
    return encoded({"done": result.verb, **more, **result.status})
