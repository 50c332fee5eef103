"""The commands that a supervisor executes itself, from signals and from its command socket; the state of the swarm."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from awoke.errors import ConfigError
from awoke.observe.web.loop import Loop
from awoke.operate.commands.lines import json_of
from awoke.swarm import linux
from awoke.swarm.mold_control import several_nodes
from awoke.swarm.node_control import NodeControl
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import SwarmOptions
from awoke.swarm.questions import Questions
from awoke.swarm.reload import OnEnd
from awoke.text.exit_codes import EXIT_AT_ONCE, EXIT_CLEAN
from awoke.waiting.time import monotonic_s

logger = logging.getLogger(__name__)


class SwarmState(Enum):
    """The life of a swarm."""

    STARTING = auto()
    """Not every node has been up yet."""
    READY = auto()
    """Every node has been up: systemd was told."""
    STOPPING = auto()
    """Each node ends, and none is started."""


class SwarmCommands:
    """Runs the commands of one swarm. Belongs to the supervisor's thread; does not block."""

    def __init__(self, options: SwarmOptions, loop: Loop, questions: Questions) -> None:
        self._options, self._loop = options, loop
        self.control = NodeControl(options, loop, questions, self)
        self.state = SwarmState.STARTING
        self.is_quiet = False
        self.exit_code = EXIT_CLEAN
        self._stop_signals = 0
        self._began_s = monotonic_s()
        self.actions: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
            "quiet": lambda given: self.quiet(),
            "scale": lambda given: self.scale(given["nodes"]),
            "dump": lambda given: self.dump(given["node"]),
        }
        """The commands that are answered at once, by verb: each gets the arguments, and returns its effect."""

    @property
    def is_stopping(self) -> bool:
        """True once the swarm stops."""
        return self.state is SwarmState.STOPPING

    # Events of nodes.

    def on_node_up(self) -> None:
        """Tells systemd, once, that every node is up."""
        nodes = self.control.nodes.values()
        if self.state is SwarmState.STARTING and all(each.state is NodeState.UP for each in nodes):
            self.state = SwarmState.READY
            linux.notify_systemd("READY=1")

    def end_quiet(self) -> None:
        """Makes nodes that start from now on begin jobs again: a reload ends `quiet`."""
        self.is_quiet = False

    def add_exit_code(self, code: int) -> None:
        """Records an exit code for the swarm; the first one that is not 0 counts."""
        self.exit_code = self.exit_code or code

    def end_swarm(self, code: int) -> None:
        """Ends the swarm with this exit code, unless it has one already."""
        self.add_exit_code(code)
        self.stop()

    # Commands.

    def stop(self) -> None:
        """Stops the swarm in order."""
        if not self.is_stopping:
            self.state = SwarmState.STOPPING
            linux.notify_systemd("STOPPING=1")
            self.control.roll.cancel("the swarm stops")
            # A mold may be stopped, hung or importing. From here on it reports only nodes that it is forking now.
            self.control.molds.close()
        for node in self.control.nodes.values():
            self.control.retire(node)

    def quiet(self) -> str:
        """Makes the nodes, and the processes that replace them, begin no new jobs. A reload ends it."""
        logger.info("quiet: no new jobs")
        self.is_quiet = True
        for node in self.control.nodes.values():
            node.quiet()
        return "no node begins new jobs; a reload ends it"

    def dump(self, number: int) -> str:
        """Makes a node write its stacks to the log.

        Raises:
            ConfigError: It has no process.
        """
        node = self.control.nodes.get(number)
        if node is None or not node.send(signal.SIGUSR2):
            raise ConfigError(f"there is no node {number}", "node")
        return f"node {number} writes its stacks to its log"

    def reload(self, on_end: OnEnd | None = None) -> bool:
        """Imports the app again and replaces all nodes; returns false if a reload can't begin now."""
        return bool(self.control.nodes) and not self.is_stopping and self.control.roll.begin(on_end)

    def scale(self, count: int) -> str:
        """Changes the number of nodes, unless the swarm stops; those with the highest numbers go first.

        Raises:
            ConfigError: Only one node may run the app.
        """
        if self.is_stopping:
            return "the swarm stops"
        mold = self.control.molds.current
        if count > 1 and mold is not None and mold.single:
            raise ConfigError(several_nodes(mold.single, count), "nodes")
        nodes = self.control.nodes
        for number in range(1, count + 1):
            node = nodes.get(number)
            if node is None:
                node = nodes[number] = NodeHandle(number)
                self.control.start(node)
            else:
                self.control.keep(node)
        for number in sorted(each for each in nodes if each > count):
            self.control.retire(nodes[number])
        return f"the swarm goes to {count} nodes"

    def status(self) -> dict[str, Any]:
        """Returns the state of the swarm, for people and programs."""
        control = self.control
        return {
            "target": self._options.target,
            "pid": os.getpid(),
            "uptime_s": round(monotonic_s() - self._began_s, 1),
            "memory_bytes": linux.resident_bytes(os.getpid()),
            "wakes": self._loop.wakes,
            "is_stopping": self.is_stopping,
            "is_quiet": self.is_quiet,
            "is_rolling": control.roll.is_under_way,
            "last_death_ns": control.last_death_ns,
            **control.molds.status(),
            "reload": control.roll.status(),
            "nodes": [node.status() for _, node in sorted(control.nodes.items())],
        }

    # Signals.

    def on_signal(self, number: int) -> None:
        """Executes the command of a signal."""
        match number:
            case signal.SIGTERM | signal.SIGINT:
                self._on_stop_signal()
            case signal.SIGQUIT:
                self.stop()
                self.control.signal_all(signal.SIGQUIT)
            case signal.SIGTSTP:
                self.quiet()
            case signal.SIGHUP:
                if not self.reload():
                    logger.warning("no reload: one is under way already, or the swarm starts or stops")
            case signal.SIGTTIN:
                self._scale_by(1)
            case signal.SIGTTOU:
                self._scale_by(-1)
            case signal.SIGUSR2:
                self.control.signal_all(signal.SIGUSR2)
                logger.info("state: %s", json_of(self.status()).decode())
            case signal.SIGCHLD:
                self.control.reap_ended()

    def _on_stop_signal(self) -> None:
        self._stop_signals += 1
        if self._stop_signals == 1:
            logger.info("stopping: running jobs finish; a second signal does not wait for them")
            self.stop()
        elif self._stop_signals == 2:
            # Not TERM again: the system may deliver two pending signals of one number as one.
            self.control.signal_all(signal.SIGQUIT)
        else:
            self.exit_code = EXIT_AT_ONCE
            self.control.signal_all(signal.SIGKILL)

    def _scale_by(self, more: int) -> None:
        try:
            self.scale(max(1, self.control.wanted_nodes() + more))
        except ConfigError as error:
            logger.error("no other number of nodes: %s", error)
