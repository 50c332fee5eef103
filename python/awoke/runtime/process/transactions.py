"""Transactions of `exactly_once` routes: results of jobs with their offsets. One thread of the engine runs them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from awoke import _native
from awoke._native import Job, JobRows, Partition, PendingStep
from awoke.declare.routing import Route
from awoke.errors import ConfigError
from awoke.payloads.dead_letter import producer_properties
from awoke.payloads.formats.format import Format
from awoke.payloads.message import Outgoing, Record, RecordOptions
from awoke.payloads.topic_formats import TopicFormats
from awoke.produce.middleware import Middleware, through
from awoke.settings import Settings, client_properties
from awoke.state.table import Table

TIMEOUT_MS = 10_000
"""The broker aborts the transaction of a process that died after this time. Until then it blocks readers of committed
messages."""

DECIDES_ON_TIMEOUT = frozenset(
    {"transaction.timeout.ms", "delivery.timeout.ms", "message.timeout.ms", "socket.timeout.ms"}
)
"""A user who sets one of these decides: librdkafka requires the others to be shorter than the first."""


class TransactionEntry:
    """The records of one job, through the middleware. Nothing is sent before it is submitted."""

    def __init__(
        self, batcher: _native.TransactionBatcher, middleware: Sequence[Middleware], formats: TopicFormats
    ) -> None:
        self._batcher, self._middleware, self._formats = batcher, middleware, formats
        self._native = batcher.entry()
        self.is_direct = not (middleware or formats)
        """True where `add_result` may be used: records pass no middleware."""
        self.add_result = self._native.add_result
        """Adds a value under the key of its message. Does not block."""

    def rows_of(self, tables: Iterable[Table[Any, Any]], job: Job) -> dict[str, JobRows]:
        """Returns the rows of tables as a job sees them, by the names of the tables. They are committed with the rest.

        Does not block. Raises ClosedError when the job has ended.
        """
        found = {table.name: self._native.rows_of(table.native, job) for table in tables}
        return {name: rows for name, rows in found.items() if rows is not None}

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None:
        """Adds a message. Does not block."""
        self.add(topic, Record(value, **options))

    def add(self, topic: str, record: Record) -> None:
        """Adds a record. As `produce`."""
        if self._middleware or self._formats.needs(topic):
            topic, record = self._through(topic, record)
        self._native.add(topic, record)

    def produce_all(self, records: Iterable[tuple[str, Record]]) -> None:
        """Adds records of one message, each with its topic. Does not block. If one can't be sent, none is added."""
        messages = [self._through(topic, record) for topic, record in records]
        for native in (self._batcher.entry(), self._native):  # The first one is dropped.
            for message in messages:
                native.add(*message)

    def _through(self, topic: str, record: Record) -> tuple[str, Record]:
        message = self._formats(through(self._middleware, Outgoing(topic, *record)))
        return message.topic, Record(*message[1:])

    def submit(self, job: Job, offset: int | None) -> PendingStep:
        """Commits the records, and the job up to this offset (None: to its end). Does not block; returns the handle."""
        return self._batcher.submit(self._native, job, offset)


class Transactions:
    """The transactions of one process of an app."""

    def __init__(
        self,
        settings: Settings,
        group: str,
        format: Format,
        middleware: Sequence[Middleware],
        formats: TopicFormats,
        box: _native.EventBox,
        *,
        may_send_letters: bool,
    ) -> None:
        if settings.kafka.get("isolation.level", "read_committed") != "read_committed":
            text = "exactly_once needs isolation.level=read_committed: an aborted message must not be processed"
            raise ConfigError(text, "isolation.level")
        self._middleware, self._formats = middleware, formats
        self.native = self._batcher = _native.TransactionBatcher(
            transactional_properties(settings, group, may_send_letters=may_send_letters),
            settings.transactional_id is None,
            settings.for_engine(),
            format.encode,
            box,
        )

    def entry(self) -> TransactionEntry:
        """Returns an empty entry."""
        return TransactionEntry(self._batcher, self._middleware, self._formats)

    def commit(self, partition: Partition) -> PendingStep:
        """Commits the stored offset of a partition, with its metadata. Does not block."""
        return self._batcher.commit(partition)

    def close(self) -> None:
        """Ends: what is not committed by then is dropped. Blocks while a transaction is under way."""
        self._batcher.close()


def transactional_id_of(settings: Settings, group: str) -> str:
    """Returns the prefix of the transactional ids of a process."""
    return settings.transactional_id or f"{group}."


def sends_letters(routes: Iterable[Route]) -> bool:
    """Tells whether dead letters are sent in transactions."""
    return any(route.is_exactly_once and route.dead_letter is not None for route in routes)


def transactional_properties(settings: Settings, group: str, *, may_send_letters: bool) -> dict[str, str]:
    """Returns librdkafka's properties for the producer of transactions."""
    # A name of its own each time is safe: brokers fence a process that lost its partitions by its generation in the
    # group.
    name = settings.transactional_id or f"{transactional_id_of(settings, group)}{uuid.uuid4().hex}"
    more = {"transactional.id": name}
    if may_send_letters:
        more |= producer_properties(settings.kafka)
    if not DECIDES_ON_TIMEOUT & settings.kafka.keys():
        more["transaction.timeout.ms"] = str(TIMEOUT_MS)
    return client_properties(settings, **more)
