"""For users' tests: brokers inside the process, and an app that runs beside the test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from awoke import _native
from awoke.events import EventSource
from awoke.settings import KafkaValue, embedded

if TYPE_CHECKING:
    from awoke.app import App
    from awoke.runtime.server import AppRunner

__all__ = ["EmbeddedCluster", "running"]


class EmbeddedCluster:
    """Kafka brokers inside this process, on free loopback ports: the real protocol, memory only.

    A partition keeps at most 5 MB or 100,000 messages. A context manager: leaving it stops the brokers.
    """

    def __init__(self, brokers: int = 1) -> None:
        self._source = EventSource()
        self._native = _native.MockCluster(brokers, self._source.box)
        self.bootstrap_servers = self._native.bootstrap_servers
        """Where the brokers listen."""
        embedded.add(self.bootstrap_servers)

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        """Create a topic; one that exists stays as it is."""
        self._native.create_topic(name, partitions, replicas)

    def set_broker_up(self, broker: int, is_up: bool) -> None:
        """Make a broker (from 1) refuse connections, or accept them again."""
        self._native.set_broker_up(broker, is_up)

    def set_round_trip(self, broker: int, round_trip_ms: int) -> None:
        """Make a broker (from 1) answer this much later."""
        self._native.set_round_trip(broker, round_trip_ms)

    def close(self) -> None:
        """Stop the brokers. Closing again does nothing."""
        embedded.discard(self.bootstrap_servers)
        self._native.close()
        self._source.close()

    def __enter__(self) -> EmbeddedCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextlib.contextmanager
def running(
    app: App,
    *,
    bootstrap_servers: str | None = None,
    workers: int | None = None,
    kafka: Mapping[str, KafkaValue] | None = None,
) -> Iterator[AppRunner]:
    """Run an app beside the `with` block; leaving the block stops it in order.

    Raises:
        ConfigError, BrokerUnreachable, UnknownTopic: it could not start.
    """
    from awoke.runtime.server import AppRunner

    app.use(bootstrap_servers=bootstrap_servers, workers=workers, kafka=kafka)
    server = AppRunner(app)
    server.start()
    try:
        yield server
    finally:
        server.stop()
