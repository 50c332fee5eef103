"""A producer in memory, and transactions: what is sent is kept, and counts as delivered at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, NamedTuple, TypeVar, Unpack, cast

from awoke._native import DeliveryHandle, Job, Mailbox, Partition, deliver
from awoke.errors import ConfigError
from awoke.payloads.message import Outgoing, ProduceOptions, Record, RecordOptions, record_of
from awoke.produce.middleware import through
from awoke.runtime.process.context import RunnableApp
from awoke.state.table import Table
from awoke.testing.messages import Pairs, headers_of

Value = TypeVar("Value")


class Sent(NamedTuple):
    """A record that was sent."""

    topic: str
    value: Any
    """As it was given to `produce`, or returned by the handler; not encoded."""
    key: bytes | None
    headers: Pairs
    partition: int | None
    """None: the brokers' number of partitions decides."""
    timestamp_ms: int | None
    data: bytes | None
    """The value as bytes, as brokers get it."""


class Answered(Generic[Value]):
    """An answer that is there already, where the runtime waits for one."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def done(self) -> bool:
        """Returns True."""
        return True

    def result(self) -> Value:
        """Returns the answer."""
        return self._value

    def wait(self, timeout_s: float | None = None) -> Value:
        """Returns the answer."""
        return self._value

    def notify(self, mailbox: Mailbox, token: int) -> bool:
        """Returns False: the answer is there."""
        return False

    def __await__(self) -> Generator[Any, Any, Value]:
        yield from ()
        return self._value


class MemoryProducer:
    """Keeps what is sent, in order. It encodes as the app's own producer does. Any thread; does not block."""

    def __init__(self, app: RunnableApp, sent: Callable[[Sent], object]) -> None:
        self._app, self._sent = app, sent
        self._offsets: dict[str, int] = {}

    def produce(self, topic: str, value: Any, **options: Unpack[ProduceOptions]) -> DeliveryHandle:
        """Keeps a message; as `Producer.produce`.

        Raises:
            EncodeError: the value, or the key, can't be encoded; TypeError: a key or header that is none.
        """
        options.pop("timeout_s", None)
        return self.keep(self.encoded(topic, Record(value, **cast("RecordOptions", options))))

    def produce_many(
        self, topic: str, messages: Iterable[Any], *, timeout_s: float | None = None
    ) -> list[DeliveryHandle]:
        """Keeps messages; as `Producer.produce_many`."""
        return [self.keep(self.encoded(topic, record_of(each))) for each in messages]

    def variant(self, **kafka: Any) -> MemoryProducer:
        """Returns the producer itself."""
        return self

    def transaction(self, timeout_s: float | None = None) -> Any:
        """Raises ConfigError: transactions need brokers."""
        raise ConfigError("a transaction of a producer needs brokers: run the app on an awoke.testing.EmbeddedCluster")

    def flush(self, timeout_s: float | None = None) -> bool:
        """Returns True: all is delivered."""
        return True

    def queued(self) -> tuple[int, int]:
        """Returns that nothing waits."""
        return 0, 0

    def close(self, timeout_s: float | None = None) -> int:
        """Returns that nothing is undelivered."""
        return 0

    def encoded(self, topic: str, record: Record) -> Sent:
        """Returns a record as brokers get it, through the app's middleware. Raises as `produce`."""
        plain = through(self._app.middleware, Outgoing(topic, *record))
        message = self._app.topic_formats(plain)
        headers = headers_of(message.headers)
        data, key = self._bytes(message.value), message.key
        if not isinstance(key, bytes | str | None):
            raise TypeError(f"a key is bytes, text or None, not {type(key).__name__}")
        key = key.encode() if isinstance(key, str) else key
        return Sent(message.topic, plain.value, key, headers, message.partition, message.timestamp_ms, data)

    def _bytes(self, value: Any) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        return value.encode() if isinstance(value, str) else self._app.format.encode(value)

    def keep(self, sent: Sent) -> DeliveryHandle:
        """Keeps a record; returns its handle, which has its answer."""
        self._sent(sent)
        offset = self._offsets[sent.topic] = self._offsets.get(sent.topic, -1) + 1
        timestamp_ms = -1 if sent.timestamp_ms is None else sent.timestamp_ms
        return deliver(sent.topic, (sent.partition or 0, offset), timestamp_ms)


MemoryTables = defaultdict[tuple[str, int], dict[bytes, bytes]]
"""The committed rows of each table and partition."""


class MemoryRows:
    """The rows of one partition of a table as one job sees them."""

    def __init__(self, committed: dict[bytes, bytes], *, is_of_lane: bool) -> None:
        self.is_of_lane = is_of_lane
        self._committed = committed
        self._written: list[tuple[int, bytes, bytes | None]] = []

    @property
    def is_written(self) -> bool:
        """True if the job has written any row."""
        return bool(self._written)

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key; None where there is no row."""
        return self._all().get(key)

    def set(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Writes a row for the message of this offset; a value of None deletes it."""
        self._written.append((offset, key, value))

    def sees(self, offset: int, key: bytes | None, id: bytes) -> bool:
        """Notes an id for the message of this offset, under its key. Returns whether it was noted before."""
        row = len(key or b"").to_bytes(4, "little") + (key or b"") + id
        is_known = self.get(row) is not None
        if not is_known:
            self.set(offset, row, b"")
        return is_known

    def items(self) -> list[tuple[bytes, bytes]]:
        """Returns all rows."""
        return list(self._all().items())

    def forget(self, offset: int) -> None:
        """Forgets what the message of this offset has written: it has failed."""
        self._written = [each for each in self._written if each[0] != offset]

    def commit(self) -> None:
        """Keeps what was written."""
        kept = self._all()
        self._committed.clear()
        self._committed.update(kept)
        self._written.clear()

    def _all(self) -> dict[bytes, bytes]:
        rows: dict[bytes, bytes | None] = dict(self._committed)
        rows |= {key: value for _, key, value in self._written}
        return {key: value for key, value in rows.items() if value is not None}


class MemoryEntry:
    """The records of one job, which are sent when it is submitted."""

    is_direct = False

    def __init__(self, producer: MemoryProducer, tables: MemoryTables) -> None:
        self._producer, self._tables = producer, tables
        self._records: list[Sent] = []
        self._rows: list[MemoryRows] = []

    def rows_of(self, tables: Iterable[Table[Any, Any]], job: Job) -> dict[str, MemoryRows]:
        """Returns the rows of tables as a job sees them, by the names of the tables."""
        found = {
            table.name: MemoryRows(self._tables[table.name, job.partition], is_of_lane=job.is_of_lanes)
            for table in tables
        }
        self._rows += found.values()
        return found

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None:
        """Adds a message."""
        self.add(topic, Record(value, **options))

    def add(self, topic: str, record: Record) -> None:
        """Adds a record."""
        self._records.append(self._producer.encoded(topic, record))

    def produce_all(self, records: Iterable[tuple[str, Record]]) -> None:
        """Adds records; none of them if one can't be sent."""
        self._records += [self._producer.encoded(topic, record) for topic, record in records]

    def submit(self, job: Job, offset: int | None) -> Answered[None]:
        """Sends the records, and records the job as done up to this offset (None: to its end)."""
        for each in self._records:
            self._producer.keep(each)
        if offset is None:
            *_, offset = job.batch().offsets() or [job.first_offset]
        for rows in self._rows:
            rows.commit()
        job.done(offset)
        return Answered(None)


class MemoryTransactions:
    """Transactions that are committed at once."""

    def __init__(self, producer: MemoryProducer) -> None:
        self._producer = producer
        self._tables: MemoryTables = defaultdict(dict)

    def entry(self) -> MemoryEntry:
        """Returns an empty entry."""
        return MemoryEntry(self._producer, self._tables)

    def commit(self, partition: Partition) -> Answered[None]:
        """Commits the stored offset of a partition."""
        return Answered(None)


class MemoryMember:
    """A member of a group without brokers: each commit is answered at once."""

    def commit(self) -> Answered[None]:
        """Commits what is stored."""
        return Answered(None)
