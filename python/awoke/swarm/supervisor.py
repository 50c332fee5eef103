"""Watches the nodes of a swarm. One thread, one loop, which blocks until something has happened.

It waits for: the end of a process (its pidfd), a message of a node or a mold (its control socket), a signal, a request
(admin socket, HTTP), and the earliest deadline. It holds no user code and makes no Kafka client: the mold runs the one,
the nodes run the other.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import time
from typing import Any

from awoke.exit_codes import EXIT_AT_ONCE, EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_LATE
from awoke.swarm import linux, protocol, systemd
from awoke.swarm.admin import AdminEndpoint
from awoke.swarm.health import Health
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.molds import Molds
from awoke.swarm.node_handle import NodeHandle, NodeState
from awoke.swarm.options import Options
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.policy import RestartPolicy
from awoke.swarm.protocol import Vitals
from awoke.swarm.rolling import OnEnd, Roll
from awoke.web.loop import Loop

logger = logging.getLogger(__name__)

SIGNALS = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGHUP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR2,
    signal.SIGCHLD,
)
REAP_AGAIN_S = 0.005
START_AGAIN_S = 1.0
"""A node that could not be started for lack of descriptors or processes is tried again after this."""


class Supervisor:
    """One swarm, from its start to its end."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._loop = Loop()
        self._deadlines = self._loop.deadlines
        self._policy = RestartPolicy(options.restarts_max, options.restart_backoff_s)
        self._nodes: dict[int, NodeHandle] = {}
        self._molds = Molds(options, self._loop, SIGNALS, self)
        self._roll = Roll(self._nodes, self._molds, self._deadlines, self)
        self._health = Health(options, self._nodes, self._deadlines, self)
        self._admin = AdminEndpoint(options, self._loop, self._nodes, self)
        self.is_stopping = self.is_quiet = False
        self._stop_signals = 0
        self._exit_code = EXIT_CLEAN
        self._is_ready_told = False
        self._has_strays = False
        self._last_death_ns = 0

    def run(self) -> int:
        """Runs until the swarm ends; returns its exit code. Blocks; on the main thread only.

        Raises:
            ConfigError: the system can't, or the admin socket or a port is taken.
        """
        linux.check_system()
        linux.become_subreaper()
        self._admin.open()
        try:
            self._hear_signals()
            systemd.watch(self._deadlines)
            self._molds.make()
            while not self.is_stopping or self._is_anything_left():
                self._loop.turn()
        finally:
            self._end()
        return self._exit_code

    def _is_anything_left(self) -> bool:
        return any(node.is_running or node.state is NodeState.FORKING for node in self._nodes.values())

    # Start and end.

    def _hear_signals(self) -> None:
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)
        self._signals, self._signals_in = reading, writing
        for each in SIGNALS:
            signal.signal(each, lambda *_: None)
            signal.siginterrupt(each, False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._loop.watch(reading, self._on_signals)

    def _end(self) -> None:
        """Leaves no process, no socket and no file."""
        self._end_strays()
        self._admin.close()
        signal.set_wakeup_fd(-1)
        self._signals.close()
        self._signals_in.close()
        self._loop.close()

    def _end_strays(self) -> None:
        """Ends the molds, nodes that are left, and processes that nodes have left behind."""
        self._molds.close()
        self._signal_all(signal.SIGKILL)
        linux.end_children()
        self._molds.close_descriptors()
        for node in self._nodes.values():
            node.close()

    # Molds.

    def on_mold_ready(self, mold: MoldHandle) -> None:
        """Starts the nodes that wait for a mold, or replaces all of them where it is a reload's."""
        for number in range(1, self._options.nodes + 1) if not self._nodes else ():
            self._nodes[number] = NodeHandle(number)
        if mold is self._molds.candidate:
            self.is_quiet = False
            self._roll.on_candidate_ready(mold)
        self.start_queued()

    def on_candidate_failed(self, why: str) -> None:
        """Stops the reload."""
        self._roll.on_candidate_failed(why)

    def on_mold_over(self, mold: MoldHandle) -> None:
        """Has nodes that this mold was to fork, and will not, forked by another one."""
        for node in self._nodes.values():
            if node.state is NodeState.FORKING and node.mold == mold.generation:
                self._deadlines.cancel_all(f"{node.number}:")
                node.end(NodeState.QUEUED)
        self._forget_unwanted()
        self.start_queued()
        self._reap_strays()

    def has_running_nodes(self) -> bool:
        """Whether any node's process runs."""
        return any(node.is_running and node.state is not NodeState.ENDING for node in self._nodes.values())

    # Nodes.

    def start_queued(self) -> None:
        """Starts the nodes that wait for a mold."""
        for node in list(self._nodes.values()):
            if node.state is NodeState.QUEUED:
                self.start_node(node)

    def start_node(self, node: NodeHandle) -> None:
        """Has a node forked, or queues it where there is no mold to fork it."""
        if self.is_stopping:
            node.enter(NodeState.ENDED)
            return
        mold = self._roll.mold_for(node)
        if mold is None:
            node.enter(NodeState.QUEUED)
            self._molds.make_at_once()
            return
        try:
            ours, theirs = protocol.pair()
        except OSError as error:
            self._start_later(node, error.strerror or str(error))
            return
        node.begin(ours, mold.generation)
        if not mold.fork(node.number, theirs.fileno()):
            node.end(NodeState.QUEUED)  # The mold ends: another one forks it.
        else:
            late = f"did not fork node {node.number} within {self._options.silent_after_s:.0f} s"
            self._deadlines.set(
                f"{node.number}:fork", self._options.silent_after_s, lambda: self._molds.replace(mold, late)
            )
        theirs.close()

    def on_not_forked(self, mold: MoldHandle, number: int, why: str) -> None:
        """Tries again later. A process that can't be watched notices that its control socket is closed, and ends."""
        node = self._nodes.get(number)
        if node is not None and node.state is NodeState.FORKING and node.mold == mold.generation:
            self._deadlines.cancel(f"{number}:fork")
            self._start_later(node, why)

    def _start_later(self, node: NodeHandle, why: str) -> None:
        """Makes room for a node that can't be started, and starts it in a moment."""
        logger.error("node %d can't be started: %s; it is tried again in %.0f s", node.number, why, START_AGAIN_S)
        node.fail(f"can't be started: {why}")
        self._loop.close_clients()
        node.end(NodeState.ENDED if self.is_stopping else NodeState.WAITING)
        self._deadlines.set(f"{node.number}:restart", START_AGAIN_S, lambda: self.start_node(node))
        self._forget_unwanted()

    def on_forked(self, mold: MoldHandle, number: int, pidfd: Pidfd) -> None:
        """Watches a node that has been forked."""
        node = self._nodes.get(number)
        if node is None or node.state is not NodeState.FORKING or node.mold != mold.generation:
            pidfd.send(signal.SIGKILL)  # It was given up: its control socket is closed.
            pidfd.close()
            return
        node.forked(pidfd)
        if self.is_quiet:
            node.quiet()
        assert node.control is not None
        logger.info("node %d: process %d", number, pidfd.pid)
        self._deadlines.cancel(f"{number}:fork")
        self._loop.watch(node.control, lambda: self._on_node_says(node))
        self._loop.watch(pidfd, lambda: self._on_node_ended(node))
        late = f"did not start within {self._options.boot_timeout_s:.0f} s"
        self._deadlines.set(f"{number}:boot", self._options.boot_timeout_s, lambda: self.replace(node, late))
        self._health.expect(node)
        if self.is_stopping or not node.is_wanted:
            self.stop_node(node, is_asked=True)
        else:
            self._roll.on_node_forked(node)
        if self._has_strays:
            self._reap_strays()

    def _on_node_says(self, node: NodeHandle) -> None:
        assert node.control is not None
        received = protocol.receive(node.control)
        if received is None:
            return
        node.heard_s = time.monotonic()
        try:
            if not received.data:
                self._loop.forget(node.control)  # Its end is told by its pidfd.
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
                self._roll.on_node_alive(node)
            case protocol.Tripwire():
                if descriptors and node.tripwire is None:  # None came where this process may open no more.
                    self._lay_tripwire(node, descriptors.pop(0))
            case protocol.NodeReady():
                self._on_node_ready(node)
            case protocol.Assigned():
                node.assigned_ns = time.monotonic_ns()
                self._roll.on_node_assigned(node)
            case protocol.Holds(count=count):
                node.holds(count)
            case protocol.Connections(text=text):
                node.why_not_ready = text
            case protocol.Failed():
                node.fail(message.text)
            case protocol.Gathered():
                self._admin.on_gathered(node, message)
            case protocol.Resumed():
                self._admin.on_resumed(node, message)

    def _lay_tripwire(self, node: NodeHandle, descriptor: int) -> None:
        node.tripwire = descriptor
        try:
            self._loop.watch(descriptor, lambda: self._on_node_ending(node))
        except OSError as error:  # It is a file, say, which can't be waited for. The pidfd tells of the end, too.
            logger.error("node %d sent a tripwire that can't be watched: %s", node.number, error.strerror)
            node.drop_tripwire()

    def _on_node_ready(self, node: NodeHandle) -> None:
        self._deadlines.cancel(f"{node.number}:boot")
        if node.state is NodeState.BOOTING:
            node.enter(NodeState.UP)
            logger.info("node %d is up after %.1f s", node.number, node.uptime_s)
            self._roll.on_node_ready(node)
        if not self._is_ready_told and all(each.state is NodeState.UP for each in self._nodes.values()):
            self._is_ready_told = True
            systemd.notify("READY=1")

    def replace(self, node: NodeHandle, why: str) -> None:
        """Stops a node that is not well, after it has written its stacks; another process follows."""
        if node.pidfd is None or node.state not in (NodeState.BOOTING, NodeState.UP):
            return
        logger.error("node %d %s: it is replaced", node.number, why)
        node.fail(why)
        node.pidfd.send(signal.SIGUSR2)
        self.stop_node(node)

    def stop_node(self, node: NodeHandle, *, is_asked: bool = False) -> None:
        """Stops a node in order, and kills it when that takes too long."""
        if node.pidfd is None:
            return
        node.is_asked = node.is_asked or is_asked
        if node.state in (NodeState.BOOTING, NodeState.UP):
            node.enter(NodeState.STOPPING)
            node.pidfd.send(signal.SIGTERM)
            node.pidfd.send(signal.SIGCONT)  # One that is stopped hears nothing else.
            late = f"did not stop within {self._options.drain_timeout_s:.0f} s"
            self._deadlines.set(f"{node.number}:kill", self._options.drain_timeout_s, lambda: self.kill(node, late))

    def kill(self, node: NodeHandle, why: str) -> None:
        """Kills a node that does not stop in order."""
        if node.pidfd is not None and node.state is not NodeState.ENDING:
            logger.error("node %d %s: killed", node.number, why)
            if self.is_stopping:
                self._exit_code = self._exit_code or EXIT_LATE
            node.pidfd.send(signal.SIGKILL)

    def _on_node_ending(self, node: NodeHandle) -> None:
        """Its process ends, or was killed. Its ports, locks and files are its own until the system has taken it apart.

        How it ended is not known before. What is to follow it waits for that.
        """
        if node.state is not NodeState.ENDING:
            self._last_death_ns = time.monotonic_ns()
            node.enter(NodeState.ENDING)
        if node.tripwire is not None:
            self._loop.forget(node.tripwire)
            node.drop_tripwire()

    def _on_node_ended(self, node: NodeHandle) -> None:
        pidfd = node.pidfd
        if pidfd is None:
            return
        self._on_node_ending(node)
        code = pidfd.reap()
        if code is None:
            self._deadlines.set(f"{node.number}:reap", REAP_AGAIN_S, lambda: self._on_node_ended(node))
            return
        self._hear_last_words(node)
        for each in (pidfd, node.control):
            self._loop.forget(each)
        self._deadlines.cancel_all(f"{node.number}:")
        ran_s, was_asked = node.uptime_s, node.is_asked
        node.end()
        level = logging.INFO if code == 0 else logging.ERROR
        logger.log(level, "node %d ended with %d after %.1f s", node.number, code, ran_s)
        self._admin.forget_answers(node)
        self._follow(node, code, ran_s, was_asked)

    def _follow(self, node: NodeHandle, code: int, ran_s: float, was_asked: bool) -> None:
        """Starts a node again, or not, after its end."""
        if self.is_stopping:
            self._exit_code = self._exit_code or max(0, code if code >= 0 else EXIT_LATE)
            return
        if not node.is_wanted:
            self._forget_unwanted()
            return
        why = node.failure or f"ended with {code} after {ran_s:.1f} s"
        if self._roll.on_node_ended(node, was_asked, why) or was_asked:
            self.start_node(node)
        else:
            self._restart(node, code, ran_s)

    def _hear_last_words(self, node: NodeHandle) -> None:
        """Reads why a node failed: it was said before the end, and may be read after it."""
        with contextlib.suppress(OSError, ValueError):
            while node.control is not None and (data := node.control.recv(protocol.MESSAGE_MAX)):
                message = protocol.decode_node(data)
                if isinstance(message, protocol.Failed):
                    node.fail(message.text)

    def _restart(self, node: NodeHandle, code: int, ran_s: float) -> None:
        decision = self._policy.after(node.number, code, ran_s)
        if decision.restart_in_s is None:
            why = "is wrongly configured" if decision.exit_code == EXIT_CONFIGURATION else "ends again and again"
            logger.error("node %d %s: the swarm ends. %s", node.number, why, node.last_error)
            self.give_up(decision.exit_code)
            return
        node.restarts += 1
        if decision.restart_in_s == 0.0:
            self.start_node(node)
        else:
            node.enter(NodeState.WAITING)
            logger.info("node %d is started again in %.1f s", node.number, decision.restart_in_s)
            self._deadlines.set(f"{node.number}:restart", decision.restart_in_s, lambda: self.start_node(node))

    # Commands.

    def give_up(self, code: int) -> None:
        """Ends the swarm with this exit code, unless there is a worse one already."""
        self._exit_code = self._exit_code or code
        self.stop()

    def stop(self) -> None:
        """Stops the swarm in order."""
        if not self.is_stopping:
            self.is_stopping = True
            systemd.notify("STOPPING=1")
            self._roll.cancel("the swarm stops")
            # Stopped, hung or importing: no node comes from a mold any more, but for those that are being forked.
            self._molds.close()
        for node in self._nodes.values():
            if node.state in (NodeState.WAITING, NodeState.QUEUED):
                self._deadlines.cancel_all(f"{node.number}:")
                node.enter(NodeState.ENDED)
            self.stop_node(node, is_asked=True)

    def quiet(self) -> None:
        """Lets the nodes begin no new jobs, nor those that replace them; a reload ends it."""
        logger.info("quiet: no new jobs")
        self.is_quiet = True
        for node in self._nodes.values():
            node.quiet()

    def dump(self, number: int) -> bool:
        """Has a node write its stacks to the log; returns false when it has no process."""
        node = self._nodes.get(number)
        return node is not None and node.pidfd is not None and node.pidfd.send(signal.SIGUSR2)

    def reload(self, on_end: OnEnd | None = None) -> bool:
        """Replaces all nodes by ones of the app as it is now; returns false when that can't begin now."""
        return bool(self._nodes) and not self.is_stopping and self._roll.begin(on_end)

    def scale(self, nodes: int) -> None:
        """Changes the number of nodes; those with the highest numbers go first."""
        wanted = set(range(1, nodes + 1))
        for number in sorted(wanted - {each for each, node in self._nodes.items() if node.is_wanted}):
            is_new = number not in self._nodes
            node = self._nodes.setdefault(number, NodeHandle(number))
            node.is_wanted = True
            if is_new:
                self.start_node(node)
        for number in sorted(set(self._nodes) - wanted):
            self._nodes[number].is_wanted = False
            self.stop_node(self._nodes[number], is_asked=True)
        self._forget_unwanted()

    def _forget_unwanted(self) -> None:
        """Removes the nodes that are not wanted and have no process."""
        for number, node in list(self._nodes.items()):
            if not node.is_wanted and not node.is_running and node.state is not NodeState.FORKING:
                self._deadlines.cancel_all(f"{number}:")
                del self._nodes[number]
                self._roll.on_node_gone(node)

    def _signal_all(self, number: int) -> None:
        for node in self._nodes.values():
            if node.pidfd is not None:
                node.pidfd.send(number)

    def _on_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in self._signals.recv(4096):
                self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        match number:
            case signal.SIGTERM | signal.SIGINT:
                self._on_stop_signal()
            case signal.SIGQUIT:
                self.stop()
                self._signal_all(signal.SIGQUIT)
            case signal.SIGTSTP:
                self.quiet()
            case signal.SIGHUP:
                if not self.reload():
                    logger.warning("no reload: one is under way already, or the swarm starts or stops")
            case signal.SIGTTIN:
                self.scale(self._wanted() + 1)
            case signal.SIGTTOU:
                self.scale(max(1, self._wanted() - 1))
            case signal.SIGUSR2:
                self._signal_all(signal.SIGUSR2)
                self._admin.log_status()
            case signal.SIGCHLD:
                self._reap_strays()

    def _on_stop_signal(self) -> None:
        self._stop_signals += 1
        if self._stop_signals == 1:
            logger.info("stopping: running jobs finish; a second signal does not wait for them")
            self.stop()
        elif self._stop_signals == 2:
            self._signal_all(signal.SIGQUIT)  # No second TERM: two of a kind may be delivered as one.
        else:
            self._exit_code = EXIT_AT_ONCE
            self._signal_all(signal.SIGKILL)

    def _wanted(self) -> int:
        return sum(node.is_wanted for node in self._nodes.values())

    def _reap_strays(self) -> None:
        """Reaps processes that nodes have left behind: they became ours."""
        # A child may be a node that the mold has not told of yet. It is looked at again then.
        self._has_strays = any(node.state is NodeState.FORKING for node in self._nodes.values())
        if self._has_strays:
            return
        linux.reap_children({node.pid for node in self._nodes.values()} | self._molds.pids())

    def status(self) -> dict[str, Any]:
        """Returns what the supervisor itself knows, for people and programs."""
        return {
            "is_stopping": self.is_stopping,
            "is_quiet": self.is_quiet,
            "is_rolling": self._roll.is_under_way,
            "last_death_ns": self._last_death_ns,
            **self._molds.status(),
            "reload": self._roll.status(),
        }
