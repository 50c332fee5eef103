"""The client of a command socket: for the command line, and for a node that asks its supervisor."""

from __future__ import annotations

import math
import socket
import struct
from pathlib import Path
from typing import Any

import msgspec

from awoke.errors import AwokeError, ConfigError
from awoke.operate.commands import lines
from awoke.operate.commands.socket_file import check_peer
from awoke.operate.commands.verbs import verb_of

PIECE_BYTES = 65_536


class NothingListens(AwokeError):
    """No process listens at the path."""

    def __init__(self, path: str, error: OSError) -> None:
        self.why = str(error.strerror or error)
        super().__init__(f"no process listens at {path}: {self.why}")


def ask(
    path: str, verb: str, within_s: float | None = None, target: str | None = None, **arguments: Any
) -> dict[str, Any]:
    """Sends a command to the process that listens at a path, and returns its answer.

    Blocks up to `within_s`, or as long as the command may take. The process refuses it if it runs another app than the
    one that `target` names.

    Raises:
        NothingListens: No process listens there.
        ConfigError: The process belongs to another user, or the command is wrong or unknown.
        AwokeError: The process does not answer, or the command has no effect.
    """
    addressed = {} if target is None else {"target": target}
    within_s = verb_of(verb).answers_within_s if within_s is None else within_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        try:
            _connect(talk, path, within_s)
        except OSError as error:
            raise NothingListens(path, error) from None
        check_peer(talk, Path(path))
        answer = b""
        try:
            talk.sendall(lines.encoded({"command": verb, **addressed, **arguments}))
            while not answer.endswith(b"\n") and (piece := talk.recv(PIECE_BYTES)):
                answer += piece
        except TimeoutError:
            text = f"the process at {path} has not answered {verb} within {within_s:.0f} s; see awoke status"
            raise AwokeError(text) from None
        except OSError as error:
            raise AwokeError(f"the process at {path} does not answer: {error}") from None
    if not answer:
        raise AwokeError(f"the process at {path} hung up: it belongs to another user, or ends")
    try:
        found = msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise AwokeError(f"the process at {path} hung up before its answer was complete") from None
    if "error" in found:
        raise ConfigError(str(found["error"]), verb)
    if "failed" in found:
        raise AwokeError(f"{verb} failed: {found['failed']}")
    return found


def _connect(talk: socket.socket, path: str, within_s: float) -> None:
    """Connects, and waits while the queue of connections is full: without SO_SNDTIMEO the system refuses then."""
    talk.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", math.ceil(within_s), 0))
    talk.connect(path)
    talk.settimeout(within_s)


class SupervisorSocket:
    """The supervisor of this node."""

    def __init__(self, path: str) -> None:
        self._path = path

    def ask(self, verb: str, **arguments: Any) -> str:
        """Sends a command and returns its effect; else as `ask` of this module. Blocks."""
        return str(ask(self._path, verb, **arguments).get("text", ""))
