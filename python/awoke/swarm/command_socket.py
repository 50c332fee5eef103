"""The command socket of a swarm: a supervisor executes a command itself, or asks its nodes."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

import msgspec

from awoke.errors import ConfigError
from awoke.observe.web import listener
from awoke.observe.web.listener import Peer, Respond, SocketListener
from awoke.observe.web.loop import Loop
from awoke.operate.commands import lines
from awoke.operate.commands.audit import audit_of, is_recorded
from awoke.operate.commands.socket_file import SocketFile
from awoke.operate.commands.verbs import VERBS, Reach, checked
from awoke.operate.commands.views import CommandResult, OperatorCommand
from awoke.swarm import protocol
from awoke.swarm.commands import SwarmCommands
from awoke.swarm.nodes import NodeState
from awoke.swarm.questions import Questions, for_partition, of_all
from awoke.waiting import time as _time

logger = logging.getLogger(__name__)

Answer = Callable[[CommandResult], object]


class CommandSocket:
    """Takes the commands of clients. For the supervisor's thread; does not block."""

    def __init__(self, path: str, target: str, loop: Loop, questions: Questions, commands: SwarmCommands) -> None:
        self.path, self._target = path, target
        self._loop, self._questions, self._commands = loop, questions, commands
        self._listener: SocketListener | None = None
        """None until it is open."""

    def open(self) -> None:
        """Opens the socket.

        Raises:
            ConfigError: It is taken.
        """
        self._file = SocketFile(self.path)
        self._listener = SocketListener(self._loop, self._file.listening, listener.is_whole_line, self.on_command)

    def close(self) -> None:
        """Closes the socket and removes its file."""
        if self._listener is not None:
            self._file.remove()
            self._listener.close()

    def on_command(self, line: bytes, respond: Respond) -> None:
        """Executes a command, and answers it now or later. A wrong one is answered with the reason."""
        peer, began_ms = None if self._listener is None else self._listener.peer, _time.wall_ms()
        try:
            command = lines.command_of(line, peer, self._target)
        except ConfigError as error:
            respond(lines.line_of(CommandResult(verb="", result="invalid_argument", text=str(error))))
            return

        def answer(result: CommandResult) -> None:
            result.node, result.at_ms = f"supervisor {os.getpid()}", began_ms
            result.took_ms = max(0, _time.wall_ms() - began_ms)
            self._record(command, result, peer)
            respond(lines.line_of(result))

        try:
            given = checked(command.verb, command.arguments)
            if command.verb == "stop":  # Its nodes end: none of them could send a record later.
                answer(CommandResult(verb="stop", text="the swarm stops"))
                self._commands.stop()
            else:
                self._execute(msgspec.structs.replace(command, arguments=given), peer, answer)
        except ConfigError as error:
            answer(CommandResult(verb=command.verb, result="invalid_argument", text=str(error)))

    def _execute(self, command: OperatorCommand, peer: Peer | None, answer: Answer) -> None:
        """Executes a command whose arguments are right.

        Raises:
            ConfigError: It is wrong all the same.
        """
        name = command.verb
        if name == "reload":
            self._reload(answer, waits=not self._is_node(peer))
        elif name == "status":
            answer(CommandResult(verb=name, status=self._commands.status()))
        elif (action := self._commands.actions.get(name)) is not None:
            answer(CommandResult(verb=name, text=action(command.arguments)))
        elif VERBS[name].reach is Reach.PARTITION:
            self._questions.ask(
                command,
                lambda results, silent: answer(for_partition(command, results, silent)),
                is_one_enough=True,
            )
        else:
            self._questions.ask(command, lambda results, silent: answer(of_all(command, results)))

    def _reload(self, answer: Answer, *, waits: bool) -> None:
        """Begins a reload, and answers when it has ended, or at once: a node that asks is replaced by it."""

        def end(why: str | None) -> None:
            if waits and why is None:
                answer(CommandResult(verb="reload", text="every node runs the new code"))
            elif waits:
                answer(CommandResult(verb="reload", result="failed_precondition", text=why or ""))

        if not self._commands.reload(end):
            raise ConfigError("a reload is under way already, or the swarm starts or stops", "reload")
        if not waits:
            answer(CommandResult(verb="reload", text="the reload has begun"))

    def _is_node(self, peer: Peer | None) -> bool:
        """Tells whether a client is a node of the swarm: it executes the command of a console, and has recorded it."""
        pids = {node.pidfd.pid for node in self._questions.nodes.values() if node.pidfd is not None}
        return peer is not None and peer.pid in pids

    def _record(self, command: OperatorCommand, result: CommandResult, peer: Peer | None) -> None:
        """Hands the record of a command to a node, which has a Kafka client."""
        if not is_recorded(command.verb) or self._is_node(peer):
            return
        data = protocol.encode(protocol.AuditRecord(audit_of(command, result)))
        for node in self._questions.nodes.values():
            if node.state is NodeState.UP and node.control is not None:
                with contextlib.suppress(OSError):  # Its buffer is full: another one may take it.
                    node.control.send(data)
                    return
        logger.warning("no node is up to record the command %s of %s", command.verb, command.who)
