"""The command socket of an app that runs in a single process, without a supervisor.

The thread:
1. waits for a connection, a request, the deadline of a client, or the bell;
2. obeys one command and answers it (`resume`, `skip` or `threads`);
3. ends when the bell has rung.
"""

from __future__ import annotations

import contextlib
import logging
import reprlib
import threading
from collections.abc import Iterator
from typing import Any

from awoke._native import Bell
from awoke.app import App
from awoke.errors import AwokeError, ConfigError
from awoke.swarm import commands
from awoke.swarm.socket_file import SocketFile
from awoke.web import listener
from awoke.web.listener import Listener, Respond
from awoke.web.loop import Loop

logger = logging.getLogger(__name__)

JOIN_WITHIN_S = 5.0
"""A subscriber of the app's that blocks must not hold up its stop."""


@contextlib.contextmanager
def open_app_socket(app: App, path: str) -> Iterator[None]:
    """Takes commands for the app inside the block; without a socket where the path can't be used, with a warning."""
    try:
        file = SocketFile(path)
    except ConfigError as error:
        logger.warning("no commands (awoke resume, skip, threads) for this process: %s", error)
        yield
        return
    served = AppSocket(app, file)
    served.start()
    try:
        yield
    finally:
        served.close()


class AppSocket:
    """A thread that takes the commands for an app."""

    def __init__(self, app: App, file: SocketFile) -> None:
        self._app, self._file = app, file
        self._bell = Bell()
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="awoke-commands", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Removes the file, ends the thread and joins it."""
        self._file.remove()
        self._is_closing = True
        self._bell.ring()
        self._thread.join(JOIN_WITHIN_S)

    def _serve(self) -> None:
        with contextlib.closing(Loop()) as loop:
            loop.watch(self._bell.fileno(), lambda: None)
            with contextlib.closing(Listener(loop, self._file.listening, listener.is_whole_line, self._on_command)):
                while not self._is_closing:
                    loop.turn()

    def _on_command(self, request: bytes, respond: Respond) -> None:
        try:
            answer = self._obey(commands.decoded(request))
        except AwokeError as error:
            answer = {"error": str(error)}
        respond(commands.encoded(answer))

    def _obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match name := command.get("command"):
            case "resume":
                return self._resume(*commands.place_of(command))
            case "skip":
                return self._skip(*commands.place_of(command), commands.offset_of(command))
            case "threads":
                entries = [commands.thread_of(each) for each in self._app.threads()]
                return {"done": name, "threads": entries}
            case _:
                text = f"{reprlib.repr(name)} is for swarms (awoke run --nodes): this app runs in a single process"
                raise ConfigError(text, "command")

    def _resume(self, topic: str, partition: int) -> dict[str, Any]:
        if commands.resumed(self._app, topic, partition):
            return {"done": "resume"}
        return {"failed": f"{topic}[{partition}] is neither paused nor stuck"}

    def _skip(self, topic: str, partition: int, offset: int) -> dict[str, Any]:
        is_skipped, blocking = commands.skipped(self._app, topic, partition, offset)
        if is_skipped:
            return {"done": "skip"}
        return {"failed": commands.why_not_skipped(f"{topic}[{partition}]", offset, blocking)}
