"""A probe of an app that runs beside a test: sends messages to it, and tells what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awoke._waiting import Delivery
from awoke.app import App
from awoke.runtime.runner import AppRunner


class Probe:
    """An app that runs beside a test: sends messages to it, and tells what became of them. Any thread."""

    def __init__(self, app: App, bootstrap_servers: str, **settings: Any) -> None:
        self.app = app
        app.use(bootstrap_servers=bootstrap_servers, **settings)
        self.runner = AppRunner(app)
        """The app's runner."""

    def start(self) -> None:
        """Starts the app. Blocks.

        Raises:
            ConfigError, BrokerUnreachable, UnknownTopic: it could not start.
        """
        self.runner.start()

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Mapping[str, bytes | str] | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Sends a message, and waits until the brokers have it. Blocks; returns its partition and offset."""
        sent = self.app.producer.produce(topic, value, key=key, headers=headers, partition=partition)
        return sent.wait()

    def stop(self) -> bool:
        """Stops the app in order; returns whether it could. Blocks."""
        return self.runner.stop()
