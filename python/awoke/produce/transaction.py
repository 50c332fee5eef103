"""Transactions of a producer: readers of committed messages see all of its messages, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, Unpack, cast
from weakref import WeakKeyDictionary

from awoke import _native
from awoke._native import DeliveryHandle, Job, JobRows, Message, PendingStep
from awoke.errors import ClosedError, StateError
from awoke.observe.ledger import acting
from awoke.payloads.message import Outgoing, ProduceOptions, Record, RecordOptions, record_of
from awoke.payloads.topic_formats import TopicFormats
from awoke.produce.middleware import Middleware, through


class Transaction:
    """Messages that are seen together or not at all. A context manager, for `with` and `async with`.

    Leaving it commits; leaving it by an exception aborts. One transaction of a producer is open at a time: others wait
    their turn, first come, first served. Any thread may produce into it while it is open.
    """

    def __init__(
        self,
        producer: _native.Producer,
        middleware: Sequence[Middleware],
        formats: TopicFormats,
        turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock],
        timeout_s: float | None,
    ) -> None:
        self._producer = producer
        self._middleware, self._formats = middleware, formats
        self._turns = turns
        self._timeout_s = timeout_s
        self._open: _native.Transaction | None = None

    def produce(self, topic: str, value: Any, **options: Unpack[ProduceOptions]) -> DeliveryHandle:
        """Sends a message as a part of the transaction, as `Producer.produce` does.

        Its handle tells that the broker has the message, not that the message is committed.

        Raises:
            ClosedError: the transaction is not open; else as `Producer.produce`.
        """
        if self._open is None:
            raise ClosedError("this transaction is not open: produce within its with block")
        timeout_s = options.pop("timeout_s", None)
        record = Record(value, **cast("RecordOptions", options))
        if self._middleware or self._formats.needs(topic):
            topic, *parts = self._formats(through(self._middleware, Outgoing(topic, *record)))
            record = Record(*parts)
        return self._open.produce(topic, record, timeout_s)

    def produce_many(self, topic: str, messages: Iterable[Any]) -> list[DeliveryHandle]:
        """Sends messages in order, each a `Record`, a pair of value and key, or a value alone; as `produce`."""
        return [self.produce(topic, record.value, **record.options) for record in map(record_of, messages)]

    def __enter__(self) -> Self:
        self._open = self._producer.begin(self._timeout_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(kind is None)

    def _end(self, is_commit: bool) -> None:
        transaction, self._open = self._open, None
        assert transaction is not None
        if is_commit:
            transaction.commit(self._timeout_s)
        else:
            transaction.abort()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        # Tasks of one loop wait here, so that no more than one thread of its pool waits for the turn.
        turn = self._turns.setdefault(loop, asyncio.Lock())
        await turn.acquire()
        try:
            self._open = await loop.run_in_executor(None, self._producer.begin, self._timeout_s)
        except BaseException:
            turn.release()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            # Shielded: a commit that has begun ends, even if the waiting task is cancelled.
            await asyncio.shield(loop.run_in_executor(None, self._end, kind is None))
        finally:
            self._turns[loop].release()


class OpenEntry(Protocol):
    """The messages of one job. They are committed together with its offset when they are submitted."""

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None: ...
    def submit(self, job: Job, offset: int | None) -> PendingStep: ...
    def rows_of(self, tables: Iterable[Any], job: Job) -> Mapping[str, JobRows]: ...


class ConsumerTransaction:
    """The messages that a consumer sends for a batch, the rows that it writes meanwhile, and its progress; made by
    `Consumer.transaction`."""

    def __init__(self, entry: OpenEntry, job: Job, tables: Sequence[Any] = ()) -> None:
        self._entry: OpenEntry | None = entry
        self._job, self._tables = job, tables
        self._outer: Mapping[str, JobRows] = {}
        """The rows outside of the block."""
        self._marked: int | None = None

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None:
        """Adds a message, which leaves when the block ends. Does not block.

        Raises:
            EncodeError: a value that can't be turned into bytes; ClosedError: the block has ended.
        """
        self._open().produce(topic, value, **options)

    def mark(self, message: Message[Any]) -> None:
        """Marks this message and those before it in the batch as all that the block completes. Does not block.

        Raises:
            ClosedError: the block has ended.
        """
        self._open()
        self._marked = message.offset

    def _open(self) -> OpenEntry:
        if self._entry is None:
            raise ClosedError("this transaction is not open: produce within its with block")
        return self._entry

    def __enter__(self) -> Self:
        if self._tables and (current := acting.get()) is not None:
            self._outer = current.rows or {}
            written = [name for name, rows in self._outer.items() if rows.is_written]
            if written:
                text = f"rows of table {written[0]!r} were written before transaction(): write them within its block"
                raise StateError(text)
            current.rows = self._open().rows_of(self._tables, self._job)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._close()
        if kind is None:
            entry.submit(self._job, self._marked).wait(NEVER_S)

    def _close(self) -> OpenEntry:
        entry, self._entry = self._open(), None
        if self._tables and (current := acting.get()) is not None:
            current.rows = self._outer
        return entry

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._close()
        if kind is None:
            await entry.submit(self._job, self._marked)


NEVER_S = 1e9
"""A commit ends when the broker answers, or with the partition or the process: it needs no time limit of its own."""
