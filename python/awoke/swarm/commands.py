"""The commands for a swarm, from signals and from clients of the admin socket, and the state of the swarm."""

from __future__ import annotations

import logging
import signal
from enum import Enum, auto
from typing import Any

from awoke.errors import ConfigError
from awoke.observe.web.loop import Loop
from awoke.swarm import systemd
from awoke.swarm.answers import Answers
from awoke.swarm.mold_control import several_nodes
from awoke.swarm.node_control import NodeControl
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import Options
from awoke.swarm.rolling import OnEnd
from awoke.text.exit_codes import EXIT_AT_ONCE, EXIT_CLEAN

logger = logging.getLogger(__name__)


class SwarmState(Enum):
    """The life of a swarm."""

    STARTING = auto()
    """Not every node has been up yet."""
    READY = auto()
    """Every node has been up: systemd was told."""
    STOPPING = auto()
    """Each node ends, and none is started."""


class Commands:
    """Runs the commands of one swarm. Belongs to the supervisor's thread; does not block."""

    def __init__(self, options: Options, loop: Loop, answers: Answers) -> None:
        self.control = NodeControl(options, loop, answers, self)
        self.state = SwarmState.STARTING
        self.is_quiet = False
        self.exit_code = EXIT_CLEAN
        self._stop_signals = 0

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
            systemd.notify("READY=1")

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
            systemd.notify("STOPPING=1")
            self.control.roll.cancel("the swarm stops")
            # A mold may be stopped, hung or importing. From here on it reports only nodes that it is forking now.
            self.control.molds.close()
        for node in self.control.nodes.values():
            self.control.retire(node)

    def quiet(self) -> None:
        """Makes the nodes, and the processes that replace them, begin no new jobs. A reload ends it."""
        logger.info("quiet: no new jobs")
        self.is_quiet = True
        for node in self.control.nodes.values():
            node.quiet()

    def dump(self, number: int) -> bool:
        """Makes a node write its stacks to the log; returns false if it has no process."""
        node = self.control.nodes.get(number)
        return node is not None and node.send(signal.SIGUSR2)

    def reload(self, on_end: OnEnd | None = None) -> bool:
        """Imports the app again and replaces all nodes; returns false if a reload can't begin now."""
        return bool(self.control.nodes) and not self.is_stopping and self.control.roll.begin(on_end)

    def scale(self, count: int) -> None:
        """Changes the number of nodes; those with the highest numbers go first.

        Raises:
            ConfigError: Only one node may run the app.
        """
        if self.is_stopping:
            return
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

    def status(self) -> dict[str, Any]:
        """Returns the state of the swarm, for people and programs."""
        control = self.control
        return {
            "is_stopping": self.is_stopping,
            "is_quiet": self.is_quiet,
            "is_rolling": control.roll.is_under_way,
            "last_death_ns": control.last_death_ns,
            **control.molds.status(),
            "reload": control.roll.status(),
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
