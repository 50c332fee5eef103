"""Commands of a node to its supervisor, on the socket that `awoke stop`, `reload` and `scale` use."""

from __future__ import annotations

import socket
from typing import Any

from awoke.errors import AwokeError, ConfigError
from awoke.operate.commands import lines as command_lines

ANSWER_WITHIN_S = 5.0
PIECE_BYTES = 65_536


class SupervisorSocket:
    """The supervisor of this node. Any thread."""

    def __init__(self, path: str) -> None:
        self._path = path

    def ask(self, command: str, **fields: Any) -> None:
        """Sends a command and waits for the answer. Blocks up to 5 s for each piece of it.

        Raises:
            ConfigError: The supervisor refuses the command. AwokeError: It does not answer, or the command failed.
        """
        answer = b""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
                talk.settimeout(ANSWER_WITHIN_S)
                talk.connect(self._path)
                talk.sendall(command_lines.encoded({"command": command, **fields}))
                while not answer.endswith(b"\n") and (piece := talk.recv(PIECE_BYTES)):
                    answer += piece
        except OSError as error:
            raise AwokeError(f"the supervisor at {self._path} does not answer: {error}") from None
        found = command_lines.decoded(answer)
        if "error" in found:
            raise ConfigError(str(found["error"]), command)
        if "failed" in found:
            raise AwokeError(f"{command} failed: {found['failed']}")
