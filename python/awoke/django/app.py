"""An app whose handlers use Django's ORM, and that takes its settings from Django's."""

from __future__ import annotations

import atexit
import contextlib
from typing import Any, Unpack

from django.conf import settings
from django.db import transaction

import awoke
from awoke.django import connections
from awoke.errors import ForkedClientError
from awoke.payloads.message import ProduceOptions

TARGET = "app"
"""The entry of `settings.AWOKE` that names the app."""
CONSOLE_URL = "console_url"
"""The entry with the address of the console, for the link in Django's admin."""
NOT_OF_THE_APP = (TARGET, CONSOLE_URL)
"""The entries of `settings.AWOKE` that are no settings of awoke's."""


class DjangoApp(awoke.App):
    """An app in a Django project: `app = awoke.django.DjangoApp("shop")`.

    The setting `AWOKE` of Django holds settings of awoke's: `AWOKE = {"bootstrap_servers": "kafka:9092"}`. Arguments
    win over it, and it wins over the environment.

    Database connections are checked before each job and closed after it, on the thread that ran it, as Django does
    with requests. A swarm's nodes share none. What a process has sent is delivered before it ends.
    """

    def __init__(self, name: str, **options: Any) -> None:
        own = {word: value for word, value in getattr(settings, "AWOKE", {}).items() if word not in NOT_OF_THE_APP}
        super().__init__(name, **{**own, **options})
        self.before_fork(connections.close_all)
        self.after_fork(connections.close_all)
        self.between_jobs(connections.close_old)
        self.between_jobs(connections.aclose_old)
        atexit.register(self._close_clients)

    def produce_on_commit(
        self, topic: str, value: Any, *, using: str | None = None, **options: Unpack[ProduceOptions]
    ) -> None:
        """Sends a message when the transaction of the database is committed; at once where none is open.

        After a rollback nothing is sent. A process that dies after the commit may lose the message: use
        `awoke.django.outbox.send` where that must not be. Does not block. The options are those of
        `Producer.produce`, and its errors are raised by the commit.
        """
        transaction.on_commit(lambda: self._send(topic, value, options), using=using)

    def _send(self, topic: str, value: Any, options: ProduceOptions) -> None:
        self.producer.produce(topic, value, **options)

    def _close_clients(self) -> None:
        """Delivers what is queued, in a process that does not run the app: it only sends."""
        with contextlib.suppress(ForkedClientError):  # The clients are the parent's, which closes them itself.
            self.close_callers(self.settings.shutdown_timeout_s)
            self.close_producer(self.settings.shutdown_timeout_s)
