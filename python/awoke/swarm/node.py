"""A node: one process of the app in a swarm, from its fork to its end."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import re
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from awoke._native import Lifeline
from awoke.app.app import App
from awoke.console.process_commands import commands_of
from awoke.console.reporter import Reporter
from awoke.errors import AwokeError, ConfigError, UnknownTopic
from awoke.observe.events import PartitionsAssigned, PartitionsLost, PartitionsRevoked
from awoke.observe.process import ThisProcess
from awoke.operate.commands.client import SupervisorSocket
from awoke.operate.commands.views import CommandResult, OperatorCommand, StackOfThread
from awoke.runtime.process.ending import LATE_S, ProcessEnd
from awoke.runtime.process.inbox import Inbox
from awoke.runtime.process.joining import is_name_taken
from awoke.runtime.process.runner import AppRunner
from awoke.runtime.process.signals import described, start, wait_and_stop
from awoke.swarm import linux, protocol
from awoke.swarm.options import SwarmOptions
from awoke.text.exit_codes import EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_LATE, EXIT_ORPHANED, code_of
from awoke.text.printable import shown

logger = logging.getLogger(__name__)

HEARD = {
    signal.SIGTERM: "signal",
    signal.SIGINT: "signal",
    signal.SIGQUIT: "quick",
    signal.SIGTSTP: "quiet",
    signal.SIGHUP: "ignored",
}
"""The word for each signal."""
STACKS_BYTES_MAX = 100_000
"""The most bytes of the stacks of a node: a message between processes has a size that the system limits."""
BLOCKED = frozenset({*HEARD, signal.SIGUSR2})
"""The signals that stay pending until the node can handle them."""
STANDARD_ERROR = 2
FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT})


def run_node(number: int, descriptor: int, load: Callable[[], App], options: SwarmOptions) -> ProcessEnd:
    """Runs the app as a node; returns how its process is to end. For the main thread of a process forked for it."""
    os.setpgid(0, 0)  # The supervisor ends what is left of this group when this process has ended.
    heard = Inbox()
    heard.hear(HEARD)  # Until the process ends: a late signal must not change its exit code.
    _dump_stacks_on_signal()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED)
    gc.enable()
    linux.signal_when_parent_ends(signal.SIGCONT)  # SIGCONT, so that a stopped node sees it, too.
    control = socket.socket(fileno=descriptor)
    if not _is_wanted(control):
        os._exit(EXIT_ORPHANED)
    ThisProcess.node = number
    _draw_own_numbers()
    try:
        app = load()
        code = Node(number, control, app, options, heard).run()
        within_s = LATE_S if code == EXIT_LATE else app.settings.shutdown_timeout_s
        return ProcessEnd(code, within_s, with_group=not _is_wanted(control))
    except (ConfigError, UnknownTopic) as error:
        return _refused(control, error, EXIT_CONFIGURATION)
    except AwokeError as error:
        return _refused(control, error, EXIT_FAILED)
    except SystemExit as end:  # Of a start-up function, or of the app's import.
        _tell(control, shown(end))
        return ProcessEnd(code_of(end), LATE_S)
    except Exception as error:
        _tell(control, f"{type(error).__name__}: {error}")
        raise
    finally:
        control.close()


def _dump_stacks_on_signal() -> None:
    """Writes stacks to standard error at a fault and upon USR2; whatever stands in for `sys.stderr`."""
    with contextlib.suppress(OSError, RuntimeError):  # There is no such descriptor.
        faulthandler.enable(STANDARD_ERROR)
        faulthandler.register(signal.SIGUSR2, STANDARD_ERROR, all_threads=True)


def _draw_own_numbers() -> None:
    """Seeds numpy's global generator anew, if the app has imported it: nodes would all draw the same numbers.

    Python's own generator is seeded anew in each forked process by Python.
    """
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()


def _refused(control: socket.socket, error: BaseException, code: int) -> ProcessEnd:
    logger.error("%s", error)
    _tell(control, str(error))
    return ProcessEnd(code, LATE_S)


def _tell(control: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):
        control.send(protocol.encode(protocol.StartFailed(why[: protocol.TEXT_MAX])))


def _is_wanted(control: socket.socket) -> bool:
    """Returns false if the supervisor has closed its end: it gave this fork up, and another process may follow."""
    poll = select.poll()
    poll.register(control, 0)
    return not poll.poll(0)


@contextlib.contextmanager
def _no_signals() -> Iterator[None]:
    """Blocks all signals, for good, in threads that start inside the block.

    The lifeline's thread has its own table of descriptors. A signal handled on it could not write to the wake-up
    descriptor, and the main thread would miss it.
    """
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - FAULTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


class Node:
    """The app of this process, with its control socket to the supervisor."""

    def __init__(self, number: int, control: socket.socket, app: App, options: SwarmOptions, heard: Inbox) -> None:
        self._number, self._control, self._app, self._options = number, control, app, options
        self._heard = heard
        self._assigned: set[str] = set()
        """The groups that have assigned partitions, or none, for the first time."""

    def run(self) -> int:
        """Runs until a signal comes or the app stops itself; returns the exit code. Blocks."""
        options = self._options
        # Before any code of the user: from here on the process ends when the supervisor ends.
        with _no_signals():
            lifeline = Lifeline(
                self._control.fileno(),
                self._lay_tripwire(),
                options.heartbeat_s,
                options.drain_timeout_s,
                EXIT_ORPHANED,
            )
        try:
            return self._serve(lifeline)
        finally:
            lifeline.close()

    def _lay_tripwire(self) -> int:
        """Makes a pipe and sends its reading end to the supervisor; returns the writing end, for the lifeline."""
        reading, writing = os.pipe()
        with contextlib.suppress(OSError):  # The supervisor has gone; the lifeline sees that, too.
            socket.send_fds(self._control, [protocol.encode(protocol.Tripwire())], [reading])
        os.close(reading)
        return writing

    def _serve(self, lifeline: Lifeline) -> int:
        for hook in self._app.after_forks:
            hook()
        self._app.use(
            bootstrap_servers=self._options.bootstrap_servers,
            workers=self._options.workers,
            kafka=self._options.kafka,
            metrics_port=self._options.metrics_port,  # Turns on librdkafka's statistics. The supervisor listens.
            **self._names(),
        )
        server = AppRunner(
            self._app,
            on_fatal_error=lambda error: self._heard.put("fatal error"),
            on_stop=lambda: self._heard.put("asked to stop"),
            collects_metrics=self._options.metrics_port is not None,
            serves_metrics=False,
        )
        commands = commands_of(server)
        if commands.takes_commands:
            commands.actions.supervisor = SupervisorSocket(self._options.socket)
        self._app.events.subscribe(PartitionsAssigned, lambda event: self._on_assigned(server, event))
        for changed in (PartitionsAssigned, PartitionsRevoked, PartitionsLost):
            self._app.events.subscribe(changed, lambda event: self._say(protocol.Holds(len(server.partitions()))))
        if not start(server, self._heard):
            return EXIT_CLEAN
        lifeline.watch(server.schedulers, [each.member for each in server.groups if each.member is not None])
        pulse = threading.Thread(target=self._pulse, args=(lifeline, server), name="awoke-pulse", daemon=True)
        pulse.start()
        control = threading.Thread(target=self._execute, args=(server,), name="awoke-control", daemon=True)
        control.start()
        self._say(protocol.NodeReady())
        code = wait_and_stop(server, self._heard)
        if server.fatal_error is not None:
            error = server.fatal_error
            self._say(protocol.StartFailed(described(error)[: protocol.TEXT_MAX], is_name_taken(error)))
        return code

    def _on_assigned(self, server: AppRunner, event: PartitionsAssigned) -> None:
        """Tells the supervisor when all groups have assigned partitions: the next node may be replaced then."""
        self._assigned.add(event.group)
        if self._assigned >= {each.group for each in server.joining}:
            self._say(protocol.Assigned())

    def _names(self) -> dict[str, Any]:
        settings = self._app.settings
        given = settings.transactional_id
        own = f"{settings.group or self._app.name}.{self._name()}" if given is None else f"{given}.{self._number}"
        return {"transactional_id": own, "instance_id": self._instance_id()}

    def _instance_id(self) -> str | None:
        """This node's own name in the group; None where it is to have none."""
        settings, given = self._app.settings, self._options.kafka
        if settings.instance_id is not None:
            return f"{settings.instance_id}-{self._number}"
        # Under KIP-848 brokers refuse a member that replaces a killed one until the session of that one is over.
        is_classic = given.get("group.protocol", settings.kafka.get("group.protocol", "classic")) == "classic"
        wants_name = self._options.static_members and "group.instance.id" not in given
        return self._name() if is_classic and wants_name else None

    def _name(self) -> str:
        parts = (socket.gethostname(), os.path.basename(self._options.socket), self._options.name)
        return ".".join((*(re.sub(r"[^A-Za-z0-9._-]", "-", part) for part in parts if part), str(self._number)))

    def _say(self, message: protocol.NodeSays) -> None:
        with contextlib.suppress(OSError):
            self._control.send(protocol.encode(message), socket.MSG_DONTWAIT)

    def _pulse(self, lifeline: Lifeline, server: AppRunner) -> None:
        """Reports the partitions whenever the lifeline asks. The lifeline measures the wait for the GIL by it."""
        alive, reported = True, None
        while alive:
            if (why := server.connections.why_not_ready()) != reported:
                self._say(protocol.BrokerConnections(why or ""))
                reported = why
            states = server.partitions()
            lags = [state.lag for state in states if state.lag is not None]
            alive = lifeline.pulse(len(states), sum(lags) if lags else -1)

    def _execute(self, server: AppRunner) -> None:
        """Answers the supervisor's requests, until the supervisor or this process ends."""
        while True:
            try:
                data = self._control.recv(protocol.MESSAGE_MAX)
            except OSError:
                return
            if not data:
                return  # The lifeline has seen it, too.
            try:
                message = protocol.decode(data, protocol.TO_NODE)
            except ValueError as error:
                logger.error("the supervisor sent a message that can't be read: %s", error)
                continue
            match message:
                case protocol.Swarm():
                    if (reporter := server.extension(Reporter)) is not None:
                        reporter.tell_swarm(message.pid, message.nodes)
                case protocol.AuditRecord():
                    commands_of(server).record(message.audit)
                case protocol.Ask():
                    self._say(protocol.NodeAnswered(message.request, self._result(server, message.command)))

    def _result(self, server: AppRunner, command: OperatorCommand) -> CommandResult:
        match command.verb:
            case "metrics":
                return CommandResult(verb="metrics", text=server.metrics_text().decode())
            case "health":
                return CommandResult(verb="health", text=msgspec.json.encode(server.health().reasons).decode())
        result = commands_of(server).actions.perform(command)
        result.text, result.stacks = result.text[: protocol.TEXT_MAX], shortened(result.stacks)
        return result


def shortened(stacks: Sequence[StackOfThread], most: int = STACKS_BYTES_MAX) -> list[StackOfThread]:
    """Returns stacks within a number of bytes, `most`: without the outermost calls where they would have more."""
    each_max = most // max(1, len(stacks))
    found = []
    for stack in stacks:
        lines, left = list[str](), each_max - sum(len(each) for each in (stack.name, stack.owner))
        for line in reversed(stack.lines):
            left -= len(line.encode()) + 3
            if left < 0:
                break
            lines.insert(0, line)
        found.append(msgspec.structs.replace(stack, lines=lines))
    return found
