"""Starts, watches, stops and reaps the nodes: applies the table in `nodes` and runs its actions.

Events come from the molds (forked, or not), from the processes (messages, tripwires, pidfds, SIGCHLD), from deadlines,
and from the health checks, the reload and the commands.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.operate.commands.views import SwarmNode
from awoke.swarm import linux, protocol
from awoke.swarm.health import NodeHealth, RestartPolicy
from awoke.swarm.leftovers import Leftovers
from awoke.swarm.mold_control import MoldControl
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import WITHOUT_PROCESS, Action, NodeEvent, NodeState, NodeTimer, transition
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.protocol import Vitals
from awoke.swarm.questions import Questions
from awoke.swarm.reload import Roll
from awoke.text.durations import duration
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_LATE
from awoke.waiting.time import monotonic_s

logger = logging.getLogger(__name__)

START_AGAIN_S = 1.0
"""A node that could not be started for lack of descriptors or processes is tried again after this."""


class NodeHost(Protocol):
    """The swarm as a whole, as its nodes need it."""

    @property
    def is_stopping(self) -> bool:
        """True once the swarm stops."""

    @property
    def is_quiet(self) -> bool:
        """True while nodes begin no new jobs."""

    def end_quiet(self) -> None:
        """Makes nodes that start from now on begin jobs again."""

    def on_node_up(self) -> None:
        """Called when a node is up."""

    def add_exit_code(self, code: int) -> None:
        """Records an exit code for the swarm; the first one that is not 0 counts."""

    def end_swarm(self, code: int) -> None:
        """Ends the swarm with this exit code."""


class NodeControl:
    """The nodes of one swarm. For the supervisor's thread; does not block, except for `end_processes`."""

    def __init__(self, options: SwarmOptions, loop: Loop, questions: Questions, host: NodeHost) -> None:
        self._options, self._loop, self._questions, self._host = options, loop, questions, host
        self._deadlines = loop.deadlines
        self._policy = RestartPolicy(options.restarts_max, options.restart_backoff_s)
        self.nodes = questions.nodes
        self.molds = MoldControl(options, loop, self)
        self.roll = Roll(self.nodes, self.molds, self._deadlines, self, at_once=options.watch)
        self._leftovers = Leftovers(self._deadlines)
        self._health = NodeHealth(options, self.nodes, self._deadlines, self)
        self.when_reload_possible: Callable[[], object] = lambda: None
        """Called when the nodes are there, and when a reload has ended. To be set before the first mold is made."""
        self.last_death_ns = 0
        """The moment when the end of a process was seen last, in nanoseconds of the monotonic clock; 0 if never."""
        self._actions: Mapping[Action, Callable[[NodeHandle], object]] = {
            Action.MAKE_MOLD: lambda node: self.molds.make_at_once(),
            Action.START: self.start,
            Action.TRY_LATER: self._try_later,
            Action.WATCH: self._watch,
            Action.ANNOUNCE: self._announce,
            Action.DUMP: lambda node: node.send(signal.SIGUSR2),
            Action.TERMINATE: self._terminate,
            Action.KILL: lambda node: node.send(signal.SIGKILL),
            Action.NOTE_DEATH: self._note_death,
            Action.CLOSE: self._close,
            Action.TELL_RELOAD: lambda node: self.roll.on_node_stopped(node),
            Action.JUDGE: self._judge,
            Action.FORGET: self._forget,
        }

    def handle(self, node: NodeHandle, event: NodeEvent) -> None:
        """Applies the table. An impossible event is a bug: it is logged, changes nothing, and the swarm goes on."""
        found = transition(node.state, event)
        if found is None:
            text = "node %d: %s can't come while it is %s, which is a bug of awoke"
            logger.error(text, node.number, event.name, node.state.value)
            return
        node.state = found.state
        for action in found.actions:
            self._actions[action](node)

    # Requests: from commands, the reload and the health checks.

    def start_queued(self) -> None:
        """Starts the nodes that wait for a mold."""
        for node in list(self.nodes.values()):
            if node.state is NodeState.QUEUED:
                self.start(node)

    def start(self, node: NodeHandle) -> None:
        """Asks a mold for a process, or queues the node where no mold is ready."""
        self._deadlines.cancel(Deadline(NodeTimer.RESTART, node.number))
        mold = self.roll.mold_for(node)
        if mold is None:
            self.handle(node, NodeEvent.NO_MOLD)
            return
        try:
            ours, theirs = protocol.pair()
        except OSError as error:
            self._fail_to_start(node, error.strerror or str(error))
            return
        with theirs:
            node.begin(ours, mold.generation)
            self.handle(node, NodeEvent.FORK_ASKED)
            if mold.fork(node.number, theirs.fileno()):
                late = f"did not fork node {node.number} within {duration(self._options.silent_after_s)}"
                self._limit(node, NodeTimer.FORK, self._options.silent_after_s, lambda: self.molds.replace(mold, late))
            else:
                self.handle(node, NodeEvent.FORK_LOST)  # The mold ends: another one forks the node.

    def stop(self, node: NodeHandle) -> None:
        """Stops a process in order; another one follows. This is no failure."""
        self.handle(node, NodeEvent.STOP)

    def retire(self, node: NodeHandle) -> None:
        """Stops a node in order, for good."""
        self.handle(node, NodeEvent.RETIRE)

    def keep(self, node: NodeHandle) -> None:
        """Takes `retire` back: another process follows the one that ends."""
        self.handle(node, NodeEvent.KEEP)

    def replace(self, node: NodeHandle, why: str) -> None:
        """Stops a process that is not well, after it has written its stacks; another one follows."""
        if node.state.is_serving:
            logger.error("node %d %s: it is replaced", node.number, why)
            node.fail(why)
        self.handle(node, NodeEvent.UNWELL)

    def kill(self, node: NodeHandle, why: str) -> None:
        """Kills a process that does not stop in order, or uses too much memory."""
        if node.state.is_alive:
            logger.error("node %d %s: killed", node.number, why)
            if self._host.is_stopping:
                self._host.add_exit_code(EXIT_LATE)
        self.handle(node, NodeEvent.OVERDUE)

    def signal_all(self, number: int) -> None:
        """Signals every process."""
        for node in self.nodes.values():
            node.send(number)

    def has_processes(self) -> bool:
        """Returns whether any node has a process, or a mold was asked for one."""
        return any(node.state not in WITHOUT_PROCESS for node in self.nodes.values())

    def end_processes(self) -> None:
        """Kills and reaps all processes: molds, nodes, and those that nodes have left behind. Blocks until they end."""
        self.molds.close()
        self.signal_all(signal.SIGKILL)
        linux.end_children()
        self.molds.close_descriptors()
        for node in self.nodes.values():
            node.close()

    def on_reload_possible(self) -> None:
        """Begins the reload that was not possible before."""
        self.when_reload_possible()

    # Events of molds.

    def on_mold_ready(self, mold: MoldHandle) -> None:
        """Starts the queued nodes, or begins to replace all nodes if the mold is a reload's."""
        is_first = not self.nodes
        for number in range(1, self._options.nodes + 1) if is_first else ():
            self.nodes[number] = NodeHandle(number)
        if mold is self.molds.candidate:
            self._host.end_quiet()
            self.roll.on_candidate_ready(mold)
        self.start_queued()
        if is_first:
            self.on_reload_possible()

    def on_candidate_failed(self, why: str) -> None:
        """Stops the reload."""
        self.roll.on_candidate_failed(why)

    def on_mold_over(self, mold: MoldHandle) -> None:
        """Makes another mold fork the nodes that this one was asked for."""
        for node in list(self.nodes.values()):
            if node.state.is_forking and node.mold == mold.generation:
                self.handle(node, NodeEvent.FORK_LOST)
        self.start_queued()
        self.reap_strays()

    def has_running_nodes(self) -> bool:
        """Returns whether the process of any node runs."""
        return any(node.state.is_alive for node in self.nodes.values())

    def wanted_nodes(self) -> int:
        """Returns the number of nodes that are to run; 0 before the first mold is ready."""
        return sum(not node.state.is_leaving for node in self.nodes.values())

    def end_swarm(self, code: int) -> None:
        """Ends the swarm with this exit code."""
        self._host.end_swarm(code)

    def on_not_forked(self, mold: MoldHandle, number: int, why: str) -> None:
        """Starts the node later. A process that can't be watched sees that its control socket is closed, and ends."""
        node = self._asked_of(mold, number)
        if node is not None:
            self._fail_to_start(node, why)

    def on_forked(self, mold: MoldHandle, number: int, pidfd: Pidfd) -> None:
        """Watches a node's process; kills one that the node does not wait for any more."""
        node = self._asked_of(mold, number)
        if node is None:
            pidfd.send(signal.SIGKILL)
            pidfd.close()
            return
        node.pidfd = pidfd
        self.handle(node, NodeEvent.FORKED)
        if node.state is NodeState.BOOTING:
            self.roll.on_node_forked(node)
        self.reap_strays()

    def _asked_of(self, mold: MoldHandle, number: int) -> NodeHandle | None:
        """Returns the node of this number, if this mold was asked for its process."""
        node = self.nodes.get(number)
        return node if node is not None and node.state.is_forking and node.mold == mold.generation else None

    # Events of processes.

    def on_message(self, node: NodeHandle) -> None:
        """Reads a message of a node. One that can't be read is logged, and changes nothing."""
        assert node.control is not None
        received = protocol.receive(node.control)
        if received is None:
            return
        node.heard_s = monotonic_s()
        try:
            if not received.data:
                self._loop.forget(node.control)  # Its pidfd tells of its end.
            else:
                self._take(node, protocol.decode_node(received.data), received.descriptors)
        except ValueError as error:
            logger.error("node %d sent a message that can't be read: %s", node.number, error)
        protocol.close_all(received.descriptors)

    def _take(self, node: NodeHandle, message: Vitals | protocol.NodeSays, descriptors: list[int]) -> None:
        """Acts on a message; takes the descriptor that it needs out of the list."""
        match message:
            case Vitals():
                self._health.on_vitals(node, message)
                self.roll.on_node_alive(node)
            case protocol.Tripwire():
                if descriptors and node.tripwire is None:  # None came where this process may open no more.
                    self._lay_tripwire(node, descriptors.pop(0))
            case protocol.NodeReady():
                self._deadlines.cancel(Deadline(NodeTimer.BOOT, node.number))
                self._policy.on_ready()
                self.handle(node, NodeEvent.READY)
                self._tell_swarm()
            case protocol.Assigned():
                node.assigned_ns = time.monotonic_ns()
                self.roll.on_node_assigned(node)
            case protocol.Holds(count=count):
                node.holds(count)
            case protocol.BrokerConnections(text=text):
                node.why_not_ready = text
            case protocol.StartFailed():
                node.fail(message.text, is_name_taken=message.is_name_taken)
            case protocol.NodeAnswered():
                self._questions.on_answer(node.number, message)

    def _lay_tripwire(self, node: NodeHandle, descriptor: int) -> None:
        node.tripwire = descriptor
        try:
            self._loop.watch(descriptor, lambda: self._on_death(node))
        except OSError as error:  # It is a file, say, which can't be waited for. The pidfd tells of the end, too.
            logger.error("node %d sent a tripwire that can't be watched: %s", node.number, error.strerror)
            node.drop_tripwire()

    def _on_death(self, node: NodeHandle) -> None:
        """Records that the process has ended. Its exit code is not known yet.

        No other process follows yet: the system has not released its ports, locks and files.
        """
        self.handle(node, NodeEvent.DIED)
        if node.tripwire is not None:
            self._loop.forget(node.tripwire)
            node.drop_tripwire()

    def _on_end(self, node: NodeHandle) -> None:
        self._on_death(node)
        self._loop.forget(node.pidfd)  # It stays readable. If the process can't be reaped yet, SIGCHLD tells when.
        self._reap(node)

    def reap_ended(self) -> None:
        """Reaps the nodes that have ended, and processes that nodes have left behind. To be called upon SIGCHLD.

        A node that ends before the process between it and its mold becomes this process's child a moment later. The
        system sends SIGCHLD for it then.
        """
        for node in list(self.nodes.values()):
            if node.state.has_ended:
                self._reap(node)
        self.reap_strays()

    def _reap(self, node: NodeHandle) -> None:
        code = None if node.pidfd is None else node.pidfd.reap()
        if code is None:
            return
        self._hear_last_words(node)
        ran_s = node.uptime_s
        level = logging.INFO if code == 0 else logging.ERROR
        logger.log(level, "node %d ended with %d after %.1f s", node.number, code, ran_s)
        node.exit_code, node.ran_s = code, ran_s
        if self._host.is_stopping:
            self._host.add_exit_code(code if code >= 0 else EXIT_LATE)
        if node.pidfd is not None:
            self._leftovers.end(f"node {node.number}", node.pidfd.pid)
        self.handle(node, NodeEvent.REAPED)

    def _hear_last_words(self, node: NodeHandle) -> None:
        """Reads why a process failed: it was said before the end, and may be read after it."""
        with contextlib.suppress(OSError, ValueError):
            while node.control is not None and (data := node.control.recv(protocol.MESSAGE_MAX)):
                message = protocol.decode_node(data)
                if isinstance(message, protocol.StartFailed):
                    node.fail(message.text, is_name_taken=message.is_name_taken)

    def reap_strays(self) -> None:
        """Reaps processes that nodes have left behind: they became children of this process.

        A child may be a node that its mold has not reported yet. Each report calls this again.
        """
        if not any(node.state.is_forking for node in self.nodes.values()):
            linux.reap_children({node.pid for node in self.nodes.values()} | self.molds.pids())

    # Actions of the table.

    def _limit(self, node: NodeHandle, timer: NodeTimer, in_s: float, action: Callable[[], object]) -> None:
        self._deadlines.set(Deadline(timer, node.number), in_s, action)

    def _fail_to_start(self, node: NodeHandle, why: str) -> None:
        logger.error("node %d can't be started: %s; it is tried again in %.0f s", node.number, why, START_AGAIN_S)
        node.fail(f"can't be started: {why}")
        self._loop.close_clients()  # They make room for the node.
        self.handle(node, NodeEvent.NOT_FORKED)

    def _try_later(self, node: NodeHandle) -> None:
        self._limit(node, NodeTimer.RESTART, START_AGAIN_S, lambda: self.start(node))

    def _watch(self, node: NodeHandle) -> None:
        assert node.control is not None
        assert node.pidfd is not None
        if self._host.is_quiet:
            node.quiet()
        logger.info("node %d: process %d", node.number, node.pidfd.pid)
        self._deadlines.cancel(Deadline(NodeTimer.FORK, node.number))
        self._loop.watch(node.control, lambda: self.on_message(node))
        self._loop.watch(node.pidfd, lambda: self._on_end(node))
        late = f"did not start within {duration(self._options.boot_timeout_s)}"
        self._limit(node, NodeTimer.BOOT, self._options.boot_timeout_s, lambda: self.replace(node, late))
        self._health.expect(node)

    def _announce(self, node: NodeHandle) -> None:
        logger.info("node %d is up after %.1f s", node.number, node.uptime_s)
        self.roll.on_node_ready(node)
        self._host.on_node_up()

    def _terminate(self, node: NodeHandle) -> None:
        node.send(signal.SIGTERM)
        node.send(signal.SIGCONT)  # A process that is stopped hears nothing else.
        late = f"did not stop within {duration(self._options.drain_timeout_s)}"
        self._limit(node, NodeTimer.STOP, self._options.drain_timeout_s, lambda: self.kill(node, late))

    def _tell_swarm(self) -> None:
        """Tells each node that is up of all nodes, for its reports. A node that does not read misses it."""
        text_max, nodes = protocol.SHOWN_TEXT_MAX, sorted(self.nodes.items())
        shown = [
            SwarmNode(
                node=number, state=each.state.shown, restarts=each.restarts, last_error=each.last_error[:text_max]
            )
            for number, each in nodes
        ]
        message = protocol.encode(protocol.Swarm(os.getpid(), shown))
        for _, each in nodes:
            if each.state is NodeState.UP and each.control is not None:
                with contextlib.suppress(OSError):
                    each.control.send(message)

    def _note_death(self, node: NodeHandle) -> None:
        self.last_death_ns = time.monotonic_ns()

    def _close(self, node: NodeHandle) -> None:
        for each in (node.pidfd, node.control):
            self._loop.forget(each)
        self._deadlines.cancel_all(NodeTimer, node.number)
        node.close()
        self._questions.forget(node.number)

    def _judge(self, node: NodeHandle) -> None:
        """Starts a failed node again: at once, after a back-off, or not at all, and then the swarm ends."""
        if not node.failure:
            node.fail(end_of(node.exit_code, node.ran_s))
        if node.is_name_taken:
            logger.error(
                "the swarm ends: another one has the names of its nodes. node %d: %s", node.number, node.failure
            )
            self._host.end_swarm(EXIT_CONFIGURATION)
            return
        if self.roll.on_node_failed(node, node.failure):
            self.start(node)
            return
        others = sum(each.state.is_serving for each in self.nodes.values())
        nodes = len(self.nodes)
        decision = self._policy.after(node.number, node.exit_code, node.ran_s, nodes=nodes, others=others)
        if decision.restart_in_s is None:
            why = "is wrongly configured" if decision.exit_code == EXIT_CONFIGURATION else "ends again and again"
            logger.error("node %d %s: the swarm ends. %s", node.number, why, node.last_error)
            self._host.end_swarm(decision.exit_code)
            return
        node.restarts += 1
        self._tell_swarm()
        if decision.restart_in_s == 0.0:
            self.start(node)
            return
        logger.info("node %d is started again in %.1f s", node.number, decision.restart_in_s)
        self._limit(node, NodeTimer.RESTART, decision.restart_in_s, lambda: self.start(node))

    def _forget(self, node: NodeHandle) -> None:
        self._deadlines.cancel_all(NodeTimer, node.number)
        if not self._host.is_stopping:
            del self.nodes[node.number]
            self.roll.on_node_gone(node)


def end_of(exit_code: int, ran_s: float) -> str:
    """Returns how a process ended that did not say why."""
    names = {each.value: each.name for each in signal.Signals}
    how = f"with {exit_code}" if exit_code >= 0 else f"by {names.get(-exit_code, f'signal {-exit_code}')}"
    return f"ended {how} after {duration(ran_s)}"
