"""The clients of the brokers that a console looks at: all have the settings of its app."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from awoke.admin import Admin
from awoke.declare.reader import Reader
from awoke.declare.starts import Start
from awoke.produce.producer import Producer
from awoke.settings import Settings

TIMEOUT_S = 10.0
"""The longest wait for one answer, unless a caller says another."""
READ_TIMEOUT_S = 30.0
"""The longest wait for messages."""


class Brokers:
    """Opens clients of the same brokers with the same login. Any thread. Each client is to be closed by its user.

    `shared` is a client for administration that takes the place of new ones, and stays open.
    """

    def __init__(self, settings: Settings, shared: Admin | None = None) -> None:
        self.settings, self._shared = settings, shared

    def options(self) -> dict[str, Any]:
        """Returns the options that each client takes."""
        found = self.settings
        return {
            "bootstrap_servers": found.bootstrap_servers,
            "kafka": {name: value for name, value in found.kafka.items() if not name.startswith("transactional.")},
            "oauth_token": found.oauth_token,
        }

    def open_admin(self) -> Admin:
        """Opens a client for administration. Does not block."""
        return Admin(**self.options())

    def admin(self) -> contextlib.AbstractContextManager[Admin]:
        """Returns a client for administration as a context: the shared one, or a new one. Does not block."""
        return self.open_admin() if self._shared is None else contextlib.nullcontext(self._shared)

    def producer(self, kafka: Mapping[str, str] | None = None) -> Producer:
        """Opens a producer with these properties beside those of the settings. Does not block."""
        options = self.options()
        return Producer(**{**options, "kafka": {**options["kafka"], **(kafka or {})}})

    def reader(
        self,
        topic: str,
        start: Start | Mapping[int, Start] = "earliest",
        *,
        kafka: Mapping[str, str] | None = None,
    ) -> Reader:
        """Opens a reader of a topic. Blocks until the topic is looked up.

        Raises:
            UnknownTopic: There is none. AuthorizationFailed; BrokerUnreachable.
        """
        options = self.options()
        options["kafka"] = {**options["kafka"], **(kafka or {})}
        return Reader(topic, start=start, admin=self._shared, **options)
