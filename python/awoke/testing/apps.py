"""Runs an app beside a block of a test, and the brokers for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from awoke.app.app import App
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.runtime.process.runner import AppRunner
from awoke.settings import KafkaValue

__all__ = ["EmbeddedCluster", "running"]


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
    app.use(bootstrap_servers=bootstrap_servers, workers=workers, kafka=kafka)
    server = AppRunner(app)
    server.start()
    try:
        yield server
    finally:
        server.stop()
