"""What jobs of `exactly_once` routes send, and their offsets, in transactions that one thread of the engine carries out."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from awoke import _native
from awoke._native import Job, Partition, PendingCommit
from awoke.dead_letter import producer_properties
from awoke.errors import ConfigError
from awoke.message import Outgoing, Record, RecordOptions
from awoke.middleware import Middleware, through
from awoke.settings import Settings, client_properties

if TYPE_CHECKING:
    from awoke.runtime.server import AppRunner

TIMEOUT_MS = 10_000
"""After so long the broker aborts the transaction of a process that died; until then nobody reads what lies behind it."""

DECIDES_ON_TIMEOUT = frozenset(
    {"transaction.timeout.ms", "delivery.timeout.ms", "message.timeout.ms", "socket.timeout.ms"}
)
"""Whoever sets one of these has decided: librdkafka wants the others to be shorter than the first."""


class Contribution:
    """What one job sends. Nothing leaves before it is submitted."""

    def __init__(self, batcher: _native.TransactionBatcher, middleware: Sequence[Middleware]) -> None:
        self._batcher, self._middleware = batcher, middleware
        self._native = batcher.entry()

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None:
        """Add a message. Does not block."""
        if self._middleware:
            message = through(self._middleware, Outgoing(topic, value, **options))
            topic, value, options = message.topic, message.value, message.options
        self._native.produce(topic, value, **options)

    def produce_all(self, topic: str, records: Sequence[Record]) -> None:
        """Adds records of one message. Does not block. If one of them can't be sent, none is added."""
        messages = [through(self._middleware, Outgoing(topic, *record)) for record in records]
        for native in (self._batcher.entry(), self._native):  # The first one is thrown away.
            for message in messages:
                native.produce(message.topic, message.value, **message.options)

    def submit(self, job: Job, offset: int | None) -> PendingCommit:
        """Commit it, and that the job is done up to this offset (None: to its end). Does not block; what is returned
        tells."""
        return self._batcher.submit(self._native, job, offset)


class Transactions:
    """The transactions of one process of an app."""

    def __init__(self, server: AppRunner, box: _native.EventBox) -> None:
        settings = server.settings
        if settings.kafka.get("isolation.level", "read_committed") != "read_committed":
            text = "exactly_once needs isolation.level=read_committed: an aborted message must not be processed"
            raise ConfigError(text, "isolation.level")
        self._middleware = server.app.middleware
        self.native = self._batcher = _native.TransactionBatcher(
            transactional_properties(settings, server.group, may_send_letters=sends_letters(server)),
            settings.transactional_id is None,
            settings.for_engine(),
            server.app.codec.encode,
            box,
        )

    def contribution(self) -> Contribution:
        """An empty one."""
        return Contribution(self._batcher, self._middleware)

    def commit(self, partition: Partition) -> PendingCommit:
        """Commit what is stored for a partition, with the text beside it. Does not block."""
        return self._batcher.commit(partition)

    def close(self) -> None:
        """End: what has not been committed is not. Blocks while a transaction is under way."""
        self._batcher.close()


def transactional_id_of(settings: Settings, group: str) -> str:
    """Returns what the transactional ids of a process begin with."""
    return settings.transactional_id or f"{group}."


def sends_letters(server: AppRunner) -> bool:
    """Whether dead letters are sent in transactions."""
    return any(route.is_exactly_once and route.dead_letter is not None for route in server.app.routes.values())


def transactional_properties(settings: Settings, group: str, *, may_send_letters: bool) -> dict[str, str]:
    """librdkafka's properties for the producer of transactions."""
    # A name of its own each time is safe: brokers fence a process that lost its partitions by its generation in the group.
    name = settings.transactional_id or f"{transactional_id_of(settings, group)}{uuid.uuid4().hex}"
    more = {"transactional.id": name}
    if may_send_letters:
        more |= producer_properties(settings.kafka)
    if not DECIDES_ON_TIMEOUT & settings.kafka.keys():
        more["transaction.timeout.ms"] = str(TIMEOUT_MS)
    return client_properties(settings, **more)
