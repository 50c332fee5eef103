"""Kafka brokers inside the process, for tests and for a first try."""

from __future__ import annotations

from types import TracebackType

from awoke import _native
from awoke.payloads.topics import Topic
from awoke.settings import embedded


class EmbeddedCluster:
    """Kafka brokers inside this process, on free loopback ports: the real protocol, memory only.

    They behave as Apache Kafka 4 does: groups of both protocols, transactions, administration. They enforce no
    retention, no quotas and no permissions. A context manager: leaving it stops the brokers.
    """

    def __init__(self, brokers: int = 1) -> None:
        self._native = _native.EmbeddedBrokers(brokers)
        self.bootstrap_servers = self._native.bootstrap_servers
        """Where the brokers listen."""
        embedded.add(self.bootstrap_servers)

    def create_topic(self, name: str, partitions: int | None = None, replicas: int = 1) -> None:
        """Create a topic; one that exists stays as it is. `None` takes the partitions that the topic declares, or 1.

        Raises:
            ValueError: Kafka would refuse the name or the partitions, or there are fewer brokers than replicas.
        """
        declared = name.partitions if isinstance(name, Topic) else None
        self._native.create_topic(name, (declared or 1) if partitions is None else partitions, replicas)

    def set_broker_up(self, broker: int, is_up: bool) -> None:
        """Make a broker (from 1) refuse connections, or accept them again."""
        self._native.inject("set_broker_up", [], [broker, is_up])

    def set_round_trip(self, broker: int, round_trip_ms: int) -> None:
        """Make a broker (from 1) answer this much later."""
        self._native.inject("set_round_trip", [], [broker, round_trip_ms])

    def close(self) -> None:
        """Stop the brokers. Closing again does nothing."""
        embedded.discard(self.bootstrap_servers)
        self._native.close()

    def __enter__(self) -> EmbeddedCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
