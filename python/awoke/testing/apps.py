"""Runs an app beside a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from awoke.app import App
from awoke.runtime.runner import AppRunner
from awoke.settings import KafkaValue


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
