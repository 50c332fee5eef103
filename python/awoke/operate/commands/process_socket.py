"""The command socket of an app that runs in a single process, without a supervisor.

The thread:
1. waits until a client connects or sends, the deadline of a client is due, or the notifier is notified;
2. executes one command and answers it;
3. ends when the notifier was notified.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Protocol

from awoke._native import Notifier
from awoke.errors import ConfigError
from awoke.observe.web import listener
from awoke.observe.web.listener import Peer, Respond, SocketListener
from awoke.observe.web.loop import Loop
from awoke.operate.commands import lines
from awoke.operate.commands.socket_file import SocketFile, SocketTaken
from awoke.operate.commands.socket_paths import note_at, socket_path
from awoke.operate.commands.views import CommandResult, OperatorCommand

logger = logging.getLogger(__name__)

JOIN_WITHIN_S = 5.0
"""The longest wait for the thread: an app's event subscriber that blocks must not delay its stop."""


class CommandExecutor(Protocol):
    """Executes commands: `Actions`, while the app runs."""

    def execute(self, command: OperatorCommand) -> CommandResult: ...


class SteeredApp(Protocol):
    """The app of this process."""

    @property
    def actions(self) -> CommandExecutor | None: ...


@contextlib.contextmanager
def open_process_socket(app: SteeredApp, path: str | None, target: str) -> Iterator[None]:
    """Takes commands for the app inside the block, at this path or at the default one.

    If the path can't be used, logs a warning and takes none.
    """
    try:
        path = path or socket_path(target)
        note_at(path, target)
        file = SocketFile(path)
    except SocketTaken:
        logger.warning(
            "no commands (awoke resume, skip, threads) for this process: another process of the app takes them at %s; "
            "give each process its own --socket PATH",
            path,
        )
        yield
        return
    except ConfigError as error:
        logger.warning("no commands (awoke resume, skip, threads) for this process: %s", error)
        yield
        return
    served = ProcessSocket(file, app, target)
    served.start()
    try:
        yield
    finally:
        served.close()


class ProcessSocket:
    """A thread that takes commands and answers them."""

    def __init__(self, file: SocketFile, app: SteeredApp, target: str) -> None:
        self._file, self._app, self._target = file, app, target
        self._listener: SocketListener | None = None
        self._notifier = Notifier()
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="awoke-commands", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Removes the file, ends the thread and joins it."""
        self._file.remove()
        self._is_closing = True
        self._notifier.notify()
        self._thread.join(JOIN_WITHIN_S)

    def _serve(self) -> None:
        with contextlib.closing(Loop()) as loop:
            loop.watch(self._notifier.fileno(), lambda: None)
            self._listener = SocketListener(loop, self._file.listening, listener.is_whole_line, self._on_command)
            with contextlib.closing(self._listener):
                while not self._is_closing:
                    loop.turn()

    def _on_command(self, line: bytes, respond: Respond) -> None:
        respond(lines.line_of(self._executed(line, None if self._listener is None else self._listener.peer)))

    def _executed(self, line: bytes, peer: Peer | None) -> CommandResult:
        try:
            command = lines.command_of(line, peer, self._target)
        except ConfigError as error:
            return CommandResult(verb="", result="invalid_argument", text=str(error))
        actions = self._app.actions
        if actions is None:
            return CommandResult(verb=command.verb, result="failed_precondition", text="the app does not run")
        return actions.execute(command)
