"""Faults for tests: a rebalance, a lost session, a broker away, a refused write. Each is waited for and remembered."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol

from awoke.app.app import App
from awoke.errors import ConfigError, OperationTimeout
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.testing.fault_script import Script, Step
from awoke.testing.nodes import kill_node

TIMEOUT_S = 30.0
"""The longest wait for a fault. A member learns of a rebalance by its heartbeat (`heartbeat.interval.ms`)."""


class PendingFault(Protocol):
    """A fault of the embedded brokers that may still have to happen."""

    def wait(self, timeout_s: float) -> bool: ...


class Fault:
    """A fault that a test asked for. Any thread may use it."""

    def __init__(self, text: str, pending: PendingFault | None = None) -> None:
        self._text, self._pending = text, pending

    @property
    def has_happened(self) -> bool:
        """True once the fault has happened, as often as it was asked for."""
        return self._pending is None or self._pending.wait(0)

    def wait(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the fault has happened. Blocks with the GIL released.

        Raises:
            OperationTimeout: The fault has not happened in time.
        """
        if self._pending is not None and not self._pending.wait(timeout_s):
            text = f"this fault has not happened within {timeout_s:g} s: {self._text}"
            raise OperationTimeout(text, self._text, timeout_s)

    def __str__(self) -> str:
        return self._text if self.has_happened else f"{self._text} (has not happened)"

    def __repr__(self) -> str:
        return f"<Fault: {self}>"


class Faults:
    """The faults of one test on embedded brokers.

    `revoke`, `lose`, `truncate`, `slow`, `broker_down`, `broker_up` and `kill_node` return when the fault has happened.
    The others return at once: their fault happens to the next request that it is for, and `Fault.wait` waits for that.
    `check` fails a test whose faults have not all happened. As a context manager, `Faults` checks at its end.
    """

    def __init__(self, cluster: EmbeddedCluster, seed: int | None = None) -> None:
        """`seed` is the seed of scripts; `None` draws one, which `report` prints.

        Raises:
            ConfigError: The brokers are not embedded: others can't be told to fail.
        """
        if not isinstance(cluster, EmbeddedCluster):
            raise ConfigError(f"faults need an EmbeddedCluster, not {cluster!r}: other brokers have none", "cluster")
        self._cluster, self._native = cluster, cluster._native
        self.seed = random.SystemRandom().randrange(2**32) if seed is None else seed
        """The seed of scripts: the same seed gives the same faults in the same order."""
        self.random = random.Random(self.seed)
        """Random numbers from the seed, for the test's own choices."""
        self.history: list[Fault] = []
        """All faults that were asked for, in order."""

    # Partitions.

    def revoke(self, group: App | str, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> Fault:
        """Revoke a partition from the member of a group that has it. Blocks until the member has given it up.

        A real rebalance of the group, after which the partition is assigned again. If no member has the partition,
        the first that gets it is meant.

        Raises:
            ValueError: There is no such group or partition; OperationTimeout: no member gave it up in time.
        """
        name = _group_of(group)
        pending = self._native.inject("revoke", [name, topic], [partition])
        return self._waited(f"revoke {topic}/{partition} in group {name}", pending, timeout_s)

    def lose(self, group: App | str, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> Fault:
        """Remove the member of a group that has a partition, as if its session were over. It loses all partitions.

        Blocks until a broker has told the member.

        Raises:
            ValueError: There is no such group or partition; OperationTimeout: no member was told in time.
        """
        name = _group_of(group)
        pending = self._native.inject("lose", [name, topic], [partition])
        return self._waited(f"lose {topic}/{partition} in group {name}", pending, timeout_s)

    def truncate(self, topic: str, partition: int, offset: int) -> Fault:
        """Drop the messages of a partition from an offset on, as after an unclean election of a leader.

        The whole batch that contains the offset is dropped.

        Raises:
            ValueError: There is no such partition.
        """
        pending = self._native.inject("truncate", [topic], [partition, offset])
        return self._note(f"truncate {topic}/{partition} to offset {offset}", pending)

    # Brokers.

    def broker_down(self, broker: int = 1) -> Fault:
        """Make a broker close its connections and refuse new ones. Its partitions and groups move to the others."""
        self._cluster.set_broker_up(broker, False)
        return self._note(f"broker {broker} down")

    def broker_up(self, broker: int = 1) -> Fault:
        """Make a broker accept connections again."""
        self._cluster.set_broker_up(broker, True)
        return self._note(f"broker {broker} up")

    @contextlib.contextmanager
    def slow(self, ms: int, broker: int = 1) -> Iterator[Fault]:
        """Make a broker answer this much later inside the block."""
        self._cluster.set_round_trip(broker, ms)
        try:
            yield self._note(f"broker {broker} answers {ms} ms later")
        finally:
            self._cluster.set_round_trip(broker, 0)

    # Requests.

    def refuse_produce(self, topic: str, error: str = "NOT_ENOUGH_REPLICAS", times: int = 1) -> Fault:
        """Refuse the next batches for a topic with an error, by Kafka's name for it.

        Raises:
            ValueError: There is no such topic or error.
        """
        return self._note(
            f"refuse {times} × produce to {topic}: {error}",
            self._native.inject("refuse_produce", [topic, error], [times]),
        )

    def refuse_fetch(self, topic: str, error: str = "NOT_LEADER_OR_FOLLOWER", times: int = 1) -> Fault:
        """Refuse the next fetches of a topic's partitions with an error, by Kafka's name for it.

        Raises:
            ValueError: There is no such topic or error.
        """
        return self._note(
            f"refuse {times} × fetch from {topic}: {error}",
            self._native.inject("refuse_fetch", [topic, error], [times]),
        )

    def refuse_commit(self, group: App | str, error: str = "REQUEST_TIMED_OUT", times: int = 1) -> Fault:
        """Refuse the next commits of a group's offsets with an error, by Kafka's name for it.

        Raises:
            ValueError: There is no such error.
        """
        name = _group_of(group)
        return self._note(
            f"refuse {times} × commit of group {name}: {error}",
            self._native.inject("refuse_commit", [name, error], [times]),
        )

    def lose_acknowledgement(self, topic: str, times: int = 1) -> Fault:
        """Write the next batches for a topic and close the connection instead of an answer.

        The producer does not know whether they were written.

        Raises:
            ValueError: There is no such topic.
        """
        return self._note(
            f"lose {times} × acknowledgement from {topic}",
            self._native.inject("lose_acknowledgement", [topic], [times]),
        )

    def abort_transaction(self, of: App | str) -> Fault:
        """Abort the next transaction when it is to be committed, and fence its producer: its time was over.

        `of` is a transactional id, or an app: then any transaction of the app's own group.
        """
        name = of if isinstance(of, str) else of.settings.transactional_id or f"{_group_of(of)}."
        return self._note(f"abort a transaction of {name}", self._native.inject("abort_transaction", [name], []))

    # Processes.

    def kill_node(self, socket: str, node: int = 1, timeout_s: float = TIMEOUT_S) -> Fault:
        """Kill a node of a swarm by SIGKILL. `socket` is the swarm's, as in `awoke run … --socket`.

        Blocks until the process has ended.

        Raises:
            ConfigError: No swarm listens there, or it has no such node; OperationTimeout: the process has not ended.
        """
        pid = kill_node(socket, node, timeout_s)
        return self._note(f"kill node {node}, process {pid}")

    # All of them.

    def script(self, *steps: Step, count: int = 10, every: tuple[int, int] = (1, 10)) -> Script:
        """Return a script of `count` faults, drawn by the seed from `steps`, with `every` many messages between two.

        `steps` are functions that have a fault happen, such as `lambda: faults.revoke("shop", "orders")`.
        """
        return Script(self.random, steps, count, every)

    def check(self) -> None:
        """Fail if a fault that was asked for has not happened.

        Raises:
            AssertionError: A fault has not happened.
        """
        assert all(fault.has_happened for fault in self.history), self.report()

    def report(self) -> str:
        """Return the seed and all faults, a line each."""
        lines = [f"{number}. {fault}" for number, fault in enumerate(self.history, 1)]
        return "\n".join([f"faults, with seed {self.seed}:", *lines])

    def _note(self, text: str, pending: PendingFault | None = None) -> Fault:
        fault = Fault(text, pending)
        self.history.append(fault)
        return fault

    def _waited(self, text: str, pending: PendingFault, timeout_s: float) -> Fault:
        fault = self._note(text, pending)
        fault.wait(timeout_s)
        return fault

    def __enter__(self) -> Faults:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.check()
        else:
            error.add_note(self.report())


def _group_of(group: App | str) -> str:
    return group if isinstance(group, str) else group.settings.group or group.name
