"""The supervisor of a swarm: one thread and one loop, without user code and without a Kafka client.

The loop:

1. waits until a descriptor is readable or the earliest deadline is due, and for nothing else. The descriptors are: the
   tripwire and the pidfd of each node, the pidfd of each mold, the control sockets of both, the signals, the
   command socket, HTTP, and their connections, the socket of the thread that watches files;
2. moves all deadlines if this process did not run for a while: nodes must not be killed for that;
3. handles each readable descriptor: `NodeControl` and `MoldControl` take messages and ends of processes,
   `SwarmCommands` takes signals, `CommandSocket` and `SwarmEndpoint` take requests;
4. runs the actions of the deadlines that are due;
5. ends when the swarm stops and no node has a process.

The states of a node, and what each event does, stand in `nodes`. A mold runs the app's import, and nodes run the rest.
"""

from __future__ import annotations

from pathlib import Path

from awoke.observe.web.loop import Loop
from awoke.swarm import linux
from awoke.swarm.command_socket import CommandSocket
from awoke.swarm.commands import SwarmCommands
from awoke.swarm.endpoint import SwarmEndpoint
from awoke.swarm.health import check_limits
from awoke.swarm.options import SwarmOptions
from awoke.swarm.questions import Questions
from awoke.swarm.reload import FileWatch
from awoke.swarm.signals import Signals


class Supervisor:
    """One swarm, from its start to its end."""

    def __init__(self, options: SwarmOptions) -> None:
        self._options = options
        self.loop = Loop()
        self.questions = Questions(self.loop)
        self.commands = SwarmCommands(options, self.loop, self.questions)
        self.control = self.commands.control
        self.socket = CommandSocket(options.socket, options.target, self.loop, self.questions, self.commands)
        self.endpoint = SwarmEndpoint(options, self.loop, self.questions, self.commands)
        self._signals = Signals(self.loop, self.commands.on_signal)
        self._watch = FileWatch(Path.cwd(), self.loop, self.commands.reload) if options.watch else None
        if self._watch is not None:
            self.control.when_reload_possible = self._watch.reload_changed

    def run(self) -> int:
        """Runs until the swarm ends; returns its exit code. Blocks; on the main thread only.

        Raises:
            ConfigError: The system lacks what a swarm or a limit needs, or the command socket or a port is taken.
        """
        linux.check_system()
        check_limits(self._options)
        linux.become_subreaper()
        self.socket.open()
        try:
            self.endpoint.open()
            self._signals.open()
            linux.tell_systemd(self.loop.deadlines)
            if self._watch is not None:
                self._watch.open()
            self.control.molds.make()
            while not self.commands.is_stopping or self.control.has_processes():
                self.loop.turn()
        finally:
            self._end()
        return self.commands.exit_code

    def close(self) -> None:
        """Closes the sockets. `run` does it, too."""
        self._signals.close()
        self.loop.close()

    def _end(self) -> None:
        """Ends all processes, and removes sockets and files."""
        if self._watch is not None:
            self._watch.close()
        self.control.end_processes()
        self.socket.close()
        self.endpoint.close()
        self.close()
