"""When a node is replaced, when a node or a mold that ended is started again, and when the swarm ends.

`NodeHealth` checks nodes by their signs of life: silence, jobs that take too long, memory.
"""

from __future__ import annotations

import logging
import os
import signal
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from awoke.errors import ConfigError
from awoke.observe.web.deadlines import Deadline, Deadlines
from awoke.settings.loading import memory_limit_bytes
from awoke.swarm import linux
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState, NodeTimer
from awoke.swarm.options import SwarmOptions
from awoke.swarm.protocol import Vitals
from awoke.text.durations import duration
from awoke.text.exit_codes import EXIT_CLEAN, EXIT_CONFIGURATION, EXIT_FAILED, EXIT_TOO_MANY_RESTARTS
from awoke.waiting.backoff import Backoff
from awoke.waiting.time import monotonic_s

logger = logging.getLogger(__name__)

STOP_WITHIN_S = 3.0
"""The time for a silent node that was continued to stop, after the last sign of life with a running job."""
FIRST_S, LIMIT_S = 1.0, 60.0
HEALTHY_S = 60.0
"""A node that ran for this time was well: its next restart is at once again."""
RESTARTS_MAX, WITHIN_S = 5, 60.0
"""More restarts than this for each node within this time: a restart does not repair the fault."""


class HealthHost(Protocol):
    """The actions on a node that is not well."""

    def replace(self, node: NodeHandle, why: str) -> None:
        """Stops a node's process that is not well; another one follows."""

    def stop(self, node: NodeHandle) -> None:
        """Stops a node's process in order; another one follows."""

    def kill(self, node: NodeHandle, why: str) -> None:
        """Kills a node."""


def check_limits(options: SwarmOptions) -> None:
    """Checks that the memory limits of a swarm can be kept here.

    Raises:
        ConfigError: The memory of a process can't be read: no limit would ever be reached.
    """
    soft, hard = options.memory_soft_bytes, options.memory_hard_bytes
    if soft is None and hard is None:
        return
    if linux.resident_bytes(os.getpid()) == 0:
        text = "the memory of a process can't be read (/proc/self/statm), so no memory limit can be kept: leave it out"
        raise ConfigError(text, "memory_limit")
    if soft is not None and linux.proportional_bytes(os.getpid()) is None:
        logger.warning(
            "the system does not tell shared memory (/proc/self/smaps_rollup): for memory_limit, each node counts with "
            "all that it shares with the others"
        )
    of_container = memory_limit_bytes()
    least = min(each for each in (soft, hard) if each is not None)
    if of_container is not None and least * options.nodes > of_container:
        logger.warning(
            "memory_limit is %d MB for each of %d nodes, and the limit of the container is %d MB: the kernel may kill "
            "a node before it is replaced",
            least >> 20,
            options.nodes,
            of_container >> 20,
        )


class NodeHealth:
    """The checks of all nodes. For the supervisor's thread; does not block."""

    def __init__(
        self, options: SwarmOptions, nodes: Mapping[int, NodeHandle], deadlines: Deadlines, host: HealthHost
    ) -> None:
        self._options, self._nodes, self._deadlines, self._host = options, nodes, deadlines, host

    def expect(self, node: NodeHandle) -> None:
        """Begins to wait for the next sign of life."""
        deadline = Deadline(NodeTimer.SILENT, node.number)
        self._deadlines.set(deadline, self._options.silent_after_s, lambda: self._on_silent(node))

    def on_vitals(self, node: NodeHandle, vitals: Vitals) -> None:
        """Checks a sign of life."""
        node.lives(vitals)
        self.expect(node)
        if Deadline(NodeTimer.FROZEN, node.number) in self._deadlines and vitals.oldest_job_ms > 0:
            self._limit_stop(node)
        if node.state is not NodeState.UP:
            return
        if vitals.oldest_job_ms > self._options.hang_after_s * 1_000:
            self._host.replace(node, f"has worked on one job for {duration(vitals.oldest_job_ms / 1_000)}")
        else:
            self._judge_memory(node, vitals.resident_bytes)

    def _on_silent(self, node: NodeHandle) -> None:
        """Stops a silent node, and kills it soon: a frozen process can't drain, and only keeps its partitions.

        A node that runs again and works on a job may finish and commit it, within the drain time.
        """
        if node.pidfd is None or node.state.has_ended:
            return
        self._host.replace(node, f"gave no sign of life for {duration(self._options.silent_after_s)}")
        node.pidfd.send(signal.SIGCONT)  # Also one that froze while it was stopping.
        self._limit_stop(node)

    def _limit_stop(self, node: NodeHandle) -> None:
        why = f"was frozen, and did not stop within {duration(STOP_WITHIN_S)} after it was continued"
        deadline = Deadline(NodeTimer.FROZEN, node.number)
        self._deadlines.set(deadline, STOP_WITHIN_S, lambda: self._host.kill(node, why))

    def _judge_memory(self, node: NodeHandle, resident_bytes: int) -> None:
        hard, soft = self._options.memory_hard_bytes, self._options.memory_soft_bytes
        assert node.pidfd is not None
        if hard is not None and resident_bytes > hard:
            node.fail(f"killed with {resident_bytes >> 20} MB")
            self._host.kill(node, f"has {resident_bytes >> 20} MB, more than it may")
        elif soft is not None and resident_bytes > soft:
            if not all(each.state.is_settled for each in self._nodes.values()):
                return  # One at a time.
            # The resident size counts shared memory in every process. Only the node's share of it counts here.
            own_bytes = linux.proportional_bytes(node.pidfd.pid) or resident_bytes
            if own_bytes > soft:
                logger.warning("node %d has %d MB: it is replaced in order", node.number, own_bytes >> 20)
                self._host.stop(node)


class Decision(NamedTuple):
    """The decision after a node or a mold has ended."""

    restart_in_s: float | None
    """The delay of the restart, 0 for at once; `None` ends the swarm."""
    exit_code: int = EXIT_CLEAN
    """The exit code of the swarm, if it ends."""


class RestartPolicy:
    """Decides when a node that failed starts again. Restarts that a user asked for do not count.

    A node that ends with 78 may be wrong about its configuration: a broker that has just started may not know a topic
    yet. So it ends no node that works, and no swarm that has worked; before that, all nodes have to agree.
    """

    def __init__(self, restarts_max: int = RESTARTS_MAX, first_s: float = FIRST_S) -> None:
        self._restarts_max = restarts_max
        self._was_ready = False
        self._refused: set[int] = set()
        self._backoff = Backoff(min(first_s, LIMIT_S), LIMIT_S)
        self._recent: deque[float] = deque()
        self._in_a_row: dict[int, int] = {}

    def on_ready(self) -> None:
        """Records that the app has started in a node: its configuration is right."""
        self._was_ready = True

    def after(self, node: int, exit_code: int, ran_s: float, *, nodes: int = 1, others: int = 0) -> Decision:
        """Decides what follows a node that has failed with this exit code after it ran for `ran_s`.

        The swarm has this number of `nodes`, and `others` of them serve.
        """
        failures = 0 if ran_s >= HEALTHY_S else self._in_a_row.get(node, 0)
        self._in_a_row[node] = failures + 1
        is_refused = exit_code == EXIT_CONFIGURATION
        if is_refused and not self._was_ready:
            self._refused.add(node)
            if len(self._refused) >= nodes:
                return Decision(None, EXIT_CONFIGURATION)
        if not (is_refused and others) and self._are_too_many(nodes):
            return Decision(None, EXIT_TOO_MANY_RESTARTS)
        if is_refused:
            return Decision(self._backoff.delay_s(failures + 1))
        return Decision(self._backoff.delay_s(failures) if failures else 0.0)

    def _are_too_many(self, nodes: int) -> bool:
        """Counts a restart. Returns whether there were too many lately."""
        now_s = monotonic_s()
        self._recent.append(now_s)
        while self._recent and self._recent[0] < now_s - WITHIN_S:
            self._recent.popleft()
        return len(self._recent) > self._restarts_max * nodes


class MoldPolicy:
    """Decides when another mold follows one that failed. Running nodes never end for the lack of a mold."""

    def __init__(self, failures_max: int = RESTARTS_MAX, first_s: float = FIRST_S) -> None:
        self._failures_max = failures_max
        self._backoff = Backoff(min(first_s, LIMIT_S), LIMIT_S, jitter=0.0)
        self._in_a_row = 0
        self._was_ready = False

    def on_ready(self) -> None:
        """Records that the app was imported: the swarm's start has succeeded."""
        self._was_ready = True

    def after(self, exit_code: int, served_s: float | None, has_nodes: bool) -> Decision:
        """Decides what follows a mold that has ended; it was ready for `served_s`, `None` if never."""
        if not self._was_ready:
            return Decision(None, EXIT_CONFIGURATION if exit_code == EXIT_CONFIGURATION else EXIT_FAILED)
        if served_s is not None and served_s >= HEALTHY_S:
            self._in_a_row = 0
        self._in_a_row += 1
        if not has_nodes and exit_code == EXIT_CONFIGURATION:
            return Decision(None, EXIT_CONFIGURATION)
        if not has_nodes and self._in_a_row > self._failures_max:
            return Decision(None, EXIT_TOO_MANY_RESTARTS)
        return Decision(self._backoff.delay_s(self._in_a_row))
