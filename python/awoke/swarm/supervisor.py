"""Watches the nodes of a swarm. One thread, one loop, which blocks until something has happened.

It waits for: the end of a process (its pidfd), what a node or the mold says (its control socket), a signal, somebody who
asks (admin socket, HTTP), and the earliest deadline. It holds no user code and makes no Kafka client: the mold does the one,
the nodes do the other.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from typing import Any

import msgspec

from awoke.errors import AwokeError, ConfigError
from awoke.swarm import linux, listener, protocol, systemd
from awoke.swarm.deadlines import OVERSLEPT_S, Deadlines
from awoke.swarm.gathering import Gathering, merged, of_nodes
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.options import Options
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.policy import EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_GAVE_UP, EXIT_LATE, RestartPolicy
from awoke.swarm.protocol import Vitals

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
ASSIGNED_WITHIN_S = 30.0
"""A rolling restart goes on after so long though a node has no partition: there may be none for it."""
GATHER_WITHIN_S = 2.0
"""Metrics of nodes that do not answer within this are left out."""
REAP_AGAIN_S = 0.005


class Mold:
    """The process that nodes are forked from, as the supervisor sees it."""

    def __init__(self, generation: int, pidfd: Pidfd, control: socket.socket) -> None:
        self.generation, self.pidfd, self.control = generation, pidfd, control


class Supervisor:
    """One swarm, from its start to its end."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._selector = selectors.DefaultSelector()
        self._deadlines = Deadlines()
        self._policy = RestartPolicy(options.restarts_max, options.restart_backoff_s)
        self._nodes: dict[int, NodeHandle] = {}
        self._mold: Mold | None = None
        self._next_mold: Mold | None = None
        self._generations = 0
        self._rolling: deque[int] = deque()
        self._rolled: int | None = None
        """The node that a rolling restart waits for."""
        self._is_stopping = False
        self._stop_signals = 0
        self._exit_code = EXIT_CLEAN
        self._is_ready_told = False
        self._gatherings: dict[int, Gathering] = {}
        self._requests = 0
        self._wakes = 0
        self._last_death_ns = 0
        self._listeners: list[listener.Listener] = []
        self._looked_s = self._began_s = time.monotonic()

    def run(self) -> int:
        """Run until the swarm ends; its exit code. Blocks; on the main thread only.

        Raises:
            ConfigError: the system can't, or the admin socket or a port is taken.
        """
        linux.check_system()
        linux.become_subreaper()
        self._listen()
        try:
            self._hear_signals()
            self._watch_for_systemd()
            self._start_mold()
            while self._is_anything_left():
                self._turn()
        finally:
            self._end()
        return self._exit_code

    def _turn(self) -> None:
        """Wait for something and act on it."""
        wait_s = self._deadlines.next_in_s()
        events = self._selector.select(wait_s)
        self._wakes += 1
        # Without a deadline it may have waited for ever.
        self._look_at_the_clock(float("inf") if wait_s is None else wait_s)
        for key, _ in events:
            if self._is_watched(key):
                key.data()
        self._look_at_the_clock(0.0)
        self._deadlines.run_due()

    def _look_at_the_clock(self, expected_s: float) -> None:
        """Whoever was not running for long, between two looks, must not punish others for it."""
        late_s = time.monotonic() - self._looked_s - expected_s
        if late_s > OVERSLEPT_S:
            logger.warning("woke up %.1f s late: deadlines are moved", late_s)
            self._deadlines.postpone(late_s + OVERSLEPT_S)
        self._looked_s = time.monotonic()

    def _is_watched(self, key: selectors.SelectorKey) -> bool:
        """Whether it is still of concern: what came before it in the same turn may have ended it."""
        return any(key is each for each in self._selector.get_map().values())

    def _is_anything_left(self) -> bool:
        if not self._is_stopping:
            return True
        return any(node.is_running or node.state == "forking" for node in self._nodes.values())

    # Start and end.

    def _listen(self) -> None:
        admin = listener.admin_socket(self._options.socket)
        self._listeners.append(listener.Listener(self._selector, admin, listener.is_whole_line, self._on_command))
        if self._options.metrics_port is not None:
            web = listener.http_socket("127.0.0.1", self._options.metrics_port)
            logger.info("health and metrics at http://127.0.0.1:%d", web.getsockname()[1])
            self._listeners.append(listener.Listener(self._selector, web, listener.is_whole_http, self._on_http))

    def _hear_signals(self) -> None:
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)
        self._signals, self._signals_in = reading, writing
        for each in SIGNALS:
            signal.signal(each, lambda *_: None)
            signal.siginterrupt(each, False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._selector.register(reading, selectors.EVENT_READ, self._on_signals)

    def _watch_for_systemd(self) -> None:
        every_s = systemd.watchdog_every_s()

        def tell() -> None:
            if every_s is not None:
                systemd.notify("WATCHDOG=1")
                self._deadlines.set("watchdog", every_s, tell)

        tell()

    def _end(self) -> None:
        """Leave no process, no socket and no file."""
        self._end_strays()
        for each in self._listeners:
            each.close()
        with contextlib.suppress(OSError):
            os.unlink(self._options.socket)
        signal.set_wakeup_fd(-1)
        self._signals.close()
        self._signals_in.close()
        self._selector.close()

    def _end_strays(self) -> None:
        """End the mold, nodes that are left, and whatever nodes have left behind."""
        for mold in (self._mold, self._next_mold):
            if mold is not None:
                mold.pidfd.send(signal.SIGKILL)
        for node in self._nodes.values():
            if node.pidfd is not None:
                node.pidfd.send(signal.SIGKILL)
        # Whoever ends leaves its own children to us, so there may be more each time.
        while left := children():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)  # A child that has not been waited for: its number is still its own.
            for pid in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        for mold in (self._mold, self._next_mold):
            if mold is not None:
                mold.control.close()
                mold.pidfd.close()
        for node in self._nodes.values():
            node.end()

    # The mold.

    def _start_mold(self) -> None:
        ours, theirs = protocol.pair()
        self._generations += 1
        options = msgspec.json.encode(self._options).decode()
        command = [sys.executable, "-m", "awoke.swarm.mold", str(theirs.fileno()), options, str(os.getpid())]
        os.set_inheritable(theirs.fileno(), True)
        pid = os.posix_spawn(sys.executable, command, os.environ, setpgroup=0, setsigdef=SIGNALS)
        theirs.close()
        mold = Mold(self._generations, Pidfd.open(pid), ours)
        self._next_mold = mold
        self._selector.register(mold.control, selectors.EVENT_READ, lambda: self._on_mold_says(mold))
        self._selector.register(mold.pidfd, selectors.EVENT_READ, lambda: self._on_mold_ended(mold))
        self._deadlines.set("mold", self._options.boot_timeout_s, lambda: self._on_mold_late(mold))

    def _on_mold_says(self, mold: Mold) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(mold.control, protocol.MESSAGE_MAX, 4)
        except (BlockingIOError, ConnectionError):
            return
        if not data:
            self._selector.unregister(mold.control)
            return
        message = protocol.decode(data)
        assert isinstance(message, dict)
        match message["kind"]:
            case "ready":
                self._on_mold_ready(mold, int(message["resident_bytes"]))
            case "refused":
                logger.error("%s", message["text"])
                self._give_up(EXIT_CONFIGURATION if mold is self._next_mold and self._mold is None else None)
            case "forked":
                self._on_forked(self._nodes[int(message["node"])], Pidfd(descriptors[0], int(message["pid"])))

    def _on_mold_ready(self, mold: Mold, resident_bytes: int) -> None:
        self._deadlines.cancel("mold")
        soft = self._options.memory_soft_bytes
        if soft is not None and soft <= resident_bytes:
            logger.error(
                "the memory limit of %d MB is below what the app has after its import, %d MB",
                soft >> 20,
                resident_bytes >> 20,
            )
            self._give_up(EXIT_CONFIGURATION)
            return
        earlier, self._mold, self._next_mold = self._mold, mold, None
        if earlier is not None:
            self._drop_mold(earlier)
            self._roll_next()
        for number in range(1, self._options.nodes + 1) if not self._nodes else ():
            self._nodes[number] = NodeHandle(number)
        for node in self._nodes.values():
            if node.state == "ended" or (node.state == "forking" and node.control is None):
                self._start_node(node)

    def _on_mold_ended(self, mold: Mold) -> None:
        code = mold.pidfd.reap()
        if code is None:
            return
        self._forget_mold(mold)
        if mold is self._next_mold:
            self._next_mold = None
            if self._mold is None:
                self._give_up(EXIT_CONFIGURATION if code == EXIT_CONFIGURATION else EXIT_GAVE_UP)
            else:
                logger.error("the reload failed: the swarm goes on as it was")
                self._rolling.clear()
        elif mold is self._mold:
            self._mold = None
            if not self._is_stopping:
                logger.error("the mold ended with %d: another is made", code)
                self._deadlines.set("new mold", 1.0, self._start_mold)

    def _on_mold_late(self, mold: Mold) -> None:
        logger.error("the app was not imported within %.0f s", self._options.boot_timeout_s)
        mold.pidfd.send(signal.SIGKILL)

    def _drop_mold(self, mold: Mold) -> None:
        mold.pidfd.send(signal.SIGKILL)  # It holds nothing that is not the system's.

    def _forget_mold(self, mold: Mold) -> None:
        for each in (mold.control, mold.pidfd):
            with contextlib.suppress(KeyError):
                self._selector.unregister(each)
        mold.control.close()
        mold.pidfd.close()

    # Nodes.

    def _start_node(self, node: NodeHandle) -> None:
        if self._is_stopping or self._mold is None:
            node.state = "ended"
            return
        ours, theirs = protocol.pair()
        node.begin(ours, self._mold.generation)
        try:
            socket.send_fds(self._mold.control, [protocol.encode("fork", node=node.number)], [theirs.fileno()])
        except OSError:
            node.end()  # The mold has ended: the next one forks it.
        finally:
            theirs.close()

    def _on_forked(self, node: NodeHandle, pidfd: Pidfd) -> None:
        node.forked(pidfd)
        assert node.control is not None
        logger.info("node %d: process %d", node.number, pidfd.pid)
        self._selector.register(node.control, selectors.EVENT_READ, lambda: self._on_node_says(node))
        self._selector.register(pidfd, selectors.EVENT_READ, lambda: self._on_node_ended(node))
        late = f"did not start within {self._options.boot_timeout_s:.0f} s"
        self._deadlines.set(f"{node.number}:boot", self._options.boot_timeout_s, lambda: self._replace(node, late))
        if self._is_stopping or not node.is_wanted:
            self._stop_node(node)

    def _on_node_says(self, node: NodeHandle) -> None:
        assert node.control is not None
        try:
            data, descriptors, _, _ = socket.recv_fds(node.control, protocol.MESSAGE_MAX, 1)
        except (BlockingIOError, ConnectionError):
            data = b""
        if not data:
            self._selector.unregister(node.control)  # Its end is told by its pidfd.
            return
        node.heard_s = time.monotonic()
        try:
            message = protocol.decode(data)
        except (ValueError, msgspec.MsgspecError) as error:
            logger.error("node %d says what nobody understands: %s", node.number, error)
            return
        if isinstance(message, Vitals):
            self._on_vitals(node, message)
            return
        match message["kind"]:
            case "tripwire" if descriptors and node.tripwire is None:  # None came where this process may open no more.
                node.tripwire = descriptors[0]
                os.set_inheritable(node.tripwire, False)
                self._selector.register(node.tripwire, selectors.EVENT_READ, lambda: self._on_node_ending(node))
            case "ready":
                self._on_node_ready(node)
            case "assigned":
                node.assigned_ns = time.monotonic_ns()
                self._on_node_assigned(node)
            case "failed":
                node.last_error = str(message["text"])
            case "metrics":
                self._on_metrics(node, int(message["request"]), str(message["text"]))

    def _on_node_ready(self, node: NodeHandle) -> None:
        self._deadlines.cancel(f"{node.number}:boot")
        if node.state == "booting":
            node.state = "up"
            logger.info("node %d is up after %.1f s", node.number, node.uptime_s)
        if self._rolled == node.number:
            self._deadlines.set("roll", ASSIGNED_WITHIN_S, self._roll_next)
        if not self._is_ready_told and all(each.state == "up" for each in self._nodes.values()):
            self._is_ready_told = True
            systemd.notify("READY=1")

    def _on_node_assigned(self, node: NodeHandle) -> None:
        if self._rolled == node.number and node.state == "up":
            self._roll_next()

    def _on_vitals(self, node: NodeHandle, vitals: Vitals) -> None:
        node.vitals = vitals
        silent = f"gave no sign of life for {self._options.silent_after_s:.0f} s"
        self._deadlines.set(f"{node.number}:silent", self._options.silent_after_s, lambda: self._replace(node, silent))
        if node.state != "up":
            return
        if vitals.oldest_job_ms > self._options.hang_after_s * 1_000:
            self._replace(node, f"has worked on one job for {vitals.oldest_job_ms / 1_000:.0f} s")
        else:
            self._judge_memory(node, vitals.resident_bytes)

    def _judge_memory(self, node: NodeHandle, resident_bytes: int) -> None:
        hard, soft = self._options.memory_hard_bytes, self._options.memory_soft_bytes
        assert node.pidfd is not None
        if hard is not None and resident_bytes > hard:
            logger.error("node %d has %d MB, more than it may: killed", node.number, resident_bytes >> 20)
            node.last_error = f"killed with {resident_bytes >> 20} MB"
            node.pidfd.send(signal.SIGKILL)
        elif soft is not None and resident_bytes > soft:
            if any(each.state in ("stopping", "ending", "forking", "booting") for each in self._nodes.values()):
                return  # One at a time.
            # What is shared counts for everybody in the resident size: only its share counts here.
            own_bytes = linux.proportional_bytes(node.pidfd.pid)
            if own_bytes > soft:
                logger.warning("node %d has %d MB: it is replaced in order", node.number, own_bytes >> 20)
                self._stop_node(node, is_asked=True)

    def _replace(self, node: NodeHandle, why: str) -> None:
        """A node is not well: have it say where it is, then end, then be ended."""
        if node.is_stopping or node.pidfd is None:
            return
        logger.error("node %d %s: it is replaced", node.number, why)
        node.last_error = why
        node.pidfd.send(signal.SIGUSR2)
        self._stop_node(node)

    def _stop_node(self, node: NodeHandle, *, is_asked: bool = False) -> None:
        if node.pidfd is None:
            return
        node.is_asked = node.is_asked or is_asked
        if not node.is_stopping:
            node.is_stopping, node.state = True, "stopping"
            node.pidfd.send(signal.SIGTERM)
            node.pidfd.send(signal.SIGCONT)  # One that is stopped hears nothing else.
            self._deadlines.set(f"{node.number}:kill", self._options.drain_timeout_s, lambda: self._kill(node))

    def _kill(self, node: NodeHandle) -> None:
        if node.pidfd is not None:
            logger.error("node %d did not stop in time: killed", node.number)
            if self._is_stopping:
                self._exit_code = self._exit_code or EXIT_LATE
            node.pidfd.send(signal.SIGKILL)

    def _on_node_ending(self, node: NodeHandle) -> None:
        """Its process ends, or was killed. Until the system is through with it, its ports, locks and files are still its own,
        and nobody knows how it ended: what is to follow it waits for that.
        """
        if node.state != "ending":
            self._last_death_ns = time.monotonic_ns()
            node.state = "ending"
        if node.tripwire is not None:
            self._selector.unregister(node.tripwire)
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
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(each)  # type: ignore[arg-type]
        self._deadlines.cancel_all(f"{node.number}:")
        ran_s = node.uptime_s
        was_asked = node.is_asked
        node.end()
        level = logging.INFO if code == 0 else logging.ERROR
        logger.log(level, "node %d ended with %d after %.1f s", node.number, code, ran_s)
        self._forget_answers(node)
        if self._is_stopping:
            self._exit_code = self._exit_code or max(0, code if code >= 0 else EXIT_LATE)
        elif not node.is_wanted:
            del self._nodes[node.number]
        elif was_asked:
            self._start_node(node)
        else:
            self._restart(node, code, ran_s)

    def _hear_last_words(self, node: NodeHandle) -> None:
        """What a node said before it ended comes before its end."""
        with contextlib.suppress(OSError, ValueError):
            while node.control is not None and (data := node.control.recv(protocol.MESSAGE_MAX)):
                message = protocol.decode(data)
                if isinstance(message, dict) and message["kind"] == "failed":
                    node.last_error = str(message["text"])

    def _restart(self, node: NodeHandle, code: int, ran_s: float) -> None:
        decision = self._policy.after(node.number, code, ran_s)
        if decision.restart_in_s is None:
            why = "is wrongly configured" if decision.exit_code == EXIT_CONFIGURATION else "ends again and again"
            logger.error("node %d %s: the swarm ends. %s", node.number, why, node.last_error)
            self._give_up(decision.exit_code)
            return
        node.restarts += 1
        if decision.restart_in_s == 0.0:
            self._start_node(node)
        else:
            node.state = "waiting"
            logger.info("node %d is started again in %.1f s", node.number, decision.restart_in_s)
            self._deadlines.set(f"{node.number}:restart", decision.restart_in_s, lambda: self._start_node(node))

    # What is asked for.

    def _give_up(self, code: int | None) -> None:
        if code is not None:
            self._exit_code = self._exit_code or code
            self._stop()

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            systemd.notify("STOPPING=1")
            self._deadlines.cancel("new mold")
            for node in self._nodes.values():
                self._deadlines.cancel(f"{node.number}:restart")
        for node in self._nodes.values():
            if node.state == "waiting":
                node.state = "ended"
            self._stop_node(node, is_asked=True)

    def _signal_all(self, number: int) -> None:
        for node in self._nodes.values():
            if node.pidfd is not None:
                node.pidfd.send(number)

    def _reload(self) -> bool:
        """Replace all nodes by ones of the app as it is now, one after the other; whether that was begun."""
        if self._next_mold is not None or self._rolled is not None or self._is_stopping:
            return False
        logger.info("reload: the app is imported anew")
        self._rolling = deque(sorted(self._nodes))
        self._start_mold()
        return True

    def _roll_next(self) -> None:
        """The next only when the last is up and has its assignment."""
        self._deadlines.cancel("roll")
        self._rolled = None
        while self._rolling:
            node = self._nodes.get(self._rolling.popleft())
            if node is None or (self._mold is not None and node.mold == self._mold.generation):
                continue
            if node.state == "up":
                self._rolled = node.number
                self._stop_node(node, is_asked=True)
                return
        logger.info("every node has been replaced")

    def _scale(self, nodes: int) -> None:
        """Have so many nodes; those with the highest numbers go first."""
        wanted = set(range(1, nodes + 1))
        for number in sorted(wanted - {each for each, node in self._nodes.items() if node.is_wanted}):
            node = self._nodes.setdefault(number, NodeHandle(number))
            node.is_wanted = True
            if not node.is_running:
                self._start_node(node)
        for number in sorted(set(self._nodes) - wanted):
            node = self._nodes[number]
            node.is_wanted = False
            if node.is_running:
                self._stop_node(node, is_asked=True)
            elif node.state != "forking":
                self._deadlines.cancel_all(f"{number}:")
                del self._nodes[number]

    def _on_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in self._signals.recv(4096):
                self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        match number:
            case signal.SIGTERM | signal.SIGINT:
                self._stop_signals += 1
                if self._stop_signals == 1:
                    logger.info("stopping: running jobs finish, a second signal hurries")
                    self._stop()
                else:
                    self._signal_all(signal.SIGTERM if self._stop_signals == 2 else signal.SIGKILL)
            case signal.SIGQUIT:
                self._stop()
                self._signal_all(signal.SIGQUIT)
            case signal.SIGTSTP:
                logger.info("quiet: no new jobs")
                self._signal_all(signal.SIGTSTP)
            case signal.SIGHUP:
                self._reload()
            case signal.SIGTTIN:
                self._scale(self._wanted() + 1)
            case signal.SIGTTOU:
                self._scale(max(1, self._wanted() - 1))
            case signal.SIGUSR2:
                self._signal_all(signal.SIGUSR2)
                logger.info("state: %s", msgspec.json.encode(self._status()).decode())
            case signal.SIGCHLD:
                self._reap_strays()

    def _wanted(self) -> int:
        return sum(node.is_wanted for node in self._nodes.values())

    def _reap_strays(self) -> None:
        """Processes that nodes have left behind are ours when they end."""
        if any(node.state == "forking" for node in self._nodes.values()):
            # One may be a node that the mold has not told of yet. It is looked at again then.
            self._deadlines.set("strays", 1.0, self._reap_strays)
            return
        known = {node.pid for node in self._nodes.values()}
        known |= {mold.pidfd.pid for mold in (self._mold, self._next_mold) if mold is not None}
        for pid in children():
            if pid not in known:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    # Who asks.

    def _status(self) -> dict[str, Any]:
        return {
            "target": self._options.target,
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self._began_s, 1),
            "memory_bytes": linux.resident_bytes(os.getpid()),
            "wakes": self._wakes,
            "is_stopping": self._is_stopping,
            "is_rolling": self._rolled is not None or self._next_mold is not None,
            "mold": None if self._mold is None else self._mold.generation,
            "last_death_ns": self._last_death_ns,
            "nodes": [self._nodes[number].status() for number in sorted(self._nodes)],
        }

    def _on_command(self, request: bytes, respond: listener.Respond) -> None:
        try:
            command = msgspec.json.decode(request, type=dict[str, Any])
            answer = self._obey(str(command.get("command")), command)
        except (AwokeError, msgspec.MsgspecError, ValueError) as error:
            answer = {"error": str(error)}
        respond(msgspec.json.encode(answer) + b"\n")

    def _obey(self, name: str, command: dict[str, Any]) -> dict[str, Any]:
        match name:
            case "status":
                return self._status()
            case "stop":
                self._stop()
            case "quiet":
                self._signal_all(signal.SIGTSTP)
            case "reload":
                if not self._reload():
                    raise ConfigError("a reload is under way already", "reload")
            case "scale":
                nodes = command.get("nodes")
                if not isinstance(nodes, int) or nodes < 1:
                    raise ConfigError(f"a swarm has at least 1 node, not {nodes!r}", "nodes")
                self._scale(nodes)
            case "dump":
                node = self._nodes.get(int(command.get("node", 0)))
                if node is None or node.pidfd is None:
                    raise ConfigError(f"there is no node {command.get('node')!r}", "node")
                node.pidfd.send(signal.SIGUSR2)
            case _:
                raise ConfigError(f"there is no command {name!r}", "command")
        return {"done": name}

    def _on_http(self, request: bytes, respond: listener.Respond) -> None:
        match listener.path_of(request):
            case "/live":
                # That this loop turns, and nothing else: brokers that are away are no reason to be restarted.
                respond(listener.http("200 OK", "alive\n"))
            case "/ready":
                waiting = [node.number for node in self._nodes.values() if node.state != "up"]
                is_ready = bool(self._nodes) and not waiting and not self._is_stopping
                text = "ready\n" if is_ready else f"not ready: nodes {waiting}\n"
                respond(listener.http("200 OK" if is_ready else "503 Service Unavailable", text))
            case "/status":
                respond(listener.http("200 OK", msgspec.json.encode(self._status()), "application/json"))
            case "/metrics":
                self._gather(respond)
            case _:
                respond(listener.http("404 Not Found", "there are /live, /ready, /status and /metrics\n"))

    def _gather(self, respond: listener.Respond) -> None:
        self._requests += 1
        request = self._requests
        asked = set()
        for node in self._nodes.values():
            if node.state == "up" and node.control is not None:
                with contextlib.suppress(OSError):
                    node.control.send(protocol.encode("metrics", request=request))
                    asked.add(node.number)
        self._gatherings[request] = Gathering(asked, respond)
        self._deadlines.set(f"gather-{request}", GATHER_WITHIN_S, lambda: self._finish_gathering(request))
        if not asked:
            self._finish_gathering(request)

    def _on_metrics(self, node: NodeHandle, request: int, text: str) -> None:
        gathering = self._gatherings.get(request)
        if gathering is not None and gathering.add(node.number, text):
            self._finish_gathering(request)

    def _forget_answers(self, node: NodeHandle) -> None:
        for request, gathering in list(self._gatherings.items()):
            if gathering.forget(node.number):
                self._finish_gathering(request)

    def _finish_gathering(self, request: int) -> None:
        gathering = self._gatherings.pop(request, None)
        self._deadlines.cancel(f"gather-{request}")
        if gathering is not None:
            text = merged(gathering.texts) + of_nodes(self._nodes)
            gathering.respond(listener.http("200 OK", text, "text/plain; version=0.0.4; charset=utf-8"))


def children() -> list[int]:
    """The processes whose parent this is."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
