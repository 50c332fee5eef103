"""The base of consumer classes: one instance for each topic-partition, for as long as it is assigned."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Literal, Protocol

from awoke._native import GroupMember, Job, Message, Partition
from awoke.errors import ClosedError, ConfigError
from awoke.observe.events import Events
from awoke.produce.producer import Producer
from awoke.produce.transaction import ConsumerTransaction, OpenEntry
from awoke.settings import Settings
from awoke.state.table import Table

current_job: ContextVar[Job | None] = ContextVar("awoke_job", default=None)
"""The job whose `consume` runs here; several jobs of one consumer may run at once."""

SEEK_ENDS = {"earliest": -2, "latest": -1}


class Application(Protocol):
    """The app of a consumer, as far as user code needs it; `awoke.App` documents each member."""

    @property
    def name(self) -> str: ...
    @property
    def events(self) -> Events: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def producer(self) -> Producer: ...
    def caller(self, service: str, **options: Any) -> Any: ...
    def logger(self, name: str) -> logging.Logger: ...
    def background(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        on_error: Literal["log", "fail", "restart"] = "log",
        name: str | None = None,
    ) -> Any: ...
    def resume(self, topic: str, partition: int) -> bool: ...
    def skip(self, topic: str, partition: int, offset: int) -> bool: ...
    def blocking(self, topic: str, partition: int) -> list[int]: ...
    def is_assigned(self, topic: str, partition: int) -> bool: ...
    def threads(self) -> Sequence[tuple[str, str, str]]: ...
    def stop(self) -> None: ...


class Stopping(Protocol):
    """Tells a background function to end. Any thread may wait for it."""

    def is_set(self) -> bool:
        """Returns whether the function is to end. Does not block."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the function is to end, or the time is up; returns whether it is to end. Blocks."""


class Background(Protocol):
    """The threads and tasks of a consumer."""

    @property
    def stopping(self) -> Stopping: ...

    def background(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        on_error: Literal["log", "fail", "restart"],
        name: str | None,
    ) -> None: ...


class Hold:
    """What a consumer holds of the runtime, which sets it before the consumer's own `__init__`."""

    __slots__ = ("assignment", "has_lanes", "has_sought", "member", "new_entry", "scope", "tables")

    def __init__(
        self,
        member: GroupMember | None = None,
        assignment: Partition | None = None,
        scope: Background | None = None,
        new_entry: Callable[[], OpenEntry] | None = None,
        *,
        has_lanes: bool = False,
        tables: Sequence[Table[Any, Any]] = (),
    ) -> None:
        self.tables = tables
        self.member, self.assignment, self.scope, self.new_entry = member, assignment, scope, new_entry
        self.has_lanes, self.has_sought = has_lanes, False


NOTHING = Hold()
"""That of a consumer which nothing runs."""


class Consumer:
    """Processes the messages of one topic-partition.

    Derive from it and decorate with `@app.consumer(topic)`. Its methods may be `async def`. They run one at a time
    and in order, on a worker of awoke's. No message of the partition comes between `revoked` and the next
    `assigned`, which is called on another instance. Where its route runs several jobs of a partition at once
    (`concurrency`), several calls of `consume` and `tick` overlap.
    """

    app: Application
    """The app that runs it: an `awoke.App`."""
    topic: str
    partition: int
    _hold: Hold = NOTHING

    def assigned(self) -> Any:
        """Called before the first batch."""

    def consume(self, *arguments: Any, **named: Any) -> Any:
        """Called for each batch: `consume(self, batch)`, with further parameters as annotations say.

        If it raises, the messages that were not marked are tried again. So declared, a type checker accepts any
        parameters.
        """
        raise NotImplementedError(f"{type(self).__qualname__} needs a method consume(self, batch)")

    def tick(self) -> Any:
        """Called every `tick_every_s` of the route, between batches, also while no messages come."""

    def revoked(self) -> Any:
        """Called after the last batch, before the partition is given back; offsets are committed before and after."""

    def lost(self) -> Any:
        """Called when the partition was lost without a revocation: another member may already process it."""

    def shutdown(self) -> Any:
        """Called after the last batch when the process stops."""

    @property
    def stopping(self) -> Stopping:
        """Set when the partition is given back or the process stops; for background functions to wait on.

        Raises:
            ClosedError: in `__init__`, before the consumer runs.
        """
        return self._owned().stopping

    def background(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        on_error: Literal["log", "fail", "restart"] = "log",
        name: str | None = None,
    ) -> None:
        """Runs a function on a thread that this consumer owns; a coroutine function as a task of an async consumer's
        loop.

        A parameter `stop` of the function gets the token that tells it to end. After `revoked` or `shutdown` the
        token is set and the thread joined; a task is cancelled. An exception is the event `background.failed`, and
        `on_error` says what follows: nothing (`log`), the consumer's next batch fails (`fail`), or the function
        runs again after a back-off (`restart`). Does not block.

        Raises:
            ClosedError: the partition has been given back, or the consumer does not run yet.
        """
        self._owned().background(function, arguments, on_error, name)

    def mark(self, message: Message[Any, Any], metadata: str | None = None) -> None:
        """Marks this message, and all before it in the batch, as done: if the batch fails, only the rest is tried
        again.

        `metadata` is committed with the offset. Does not block; the next commit sends both to the broker.

        Raises:
            ClosedError: the consumer does not run yet.
            FencedError: the partition was taken away meanwhile.
            ConfigError: the route has tables, whose rows go with the offset.
        """
        if self._hold.tables:
            text = "rows of tables go with the offset: say with self.transaction() as t, and t.mark(message)"
            raise ConfigError(text, "tables")
        job = current_job.get()
        if job is not None:
            job.done(message.offset)
        elif self._hold.has_lanes:
            raise ClosedError(
                "mark() of a consumer with several jobs at once belongs into consume, on its own thread or task"
            )
        if job is None or metadata is not None:
            self._assigned().annotate(message.offset + 1, metadata)

    def transaction(self) -> ConsumerTransaction:
        """Begins a transaction of an `exactly_once` route: messages sent and offset become visible together or not at
        all.

        ```python
        def consume(self, batch):
            with self.transaction() as t:
                for message in batch:
                    t.produce("totals", self.add(message.value), key=message.key)
        ```

        Nothing is sent before the block ends; the rows that it writes in tables are committed with it. If the block
        raises, nothing is sent, and its messages are tried again in their place. The end of the block waits for the
        commit of the transaction, which other jobs may share; `async with` awaits it. The offset after the batch is
        committed, or the offset after the last message marked with `t.mark`.

        Raises:
            ConfigError: the route is not exactly-once; ClosedError: outside of `consume`; StateError, where the block
            begins: rows were written before it, which would be committed later.
        Raises, at the end:
            KafkaError, MessageTooLarge: the broker refused a message, nothing was sent; FencedError: the partition was
            taken away meanwhile, nothing was sent; ProducerFenced; ClosedError: the process stops, nothing was sent.
        """
        if self._hold.new_entry is None:
            raise ConfigError("transaction() needs a route with exactly_once=True", "exactly_once")
        job = current_job.get()
        if job is None:
            raise ClosedError("transaction() belongs into consume, on its own thread or task")
        return ConsumerTransaction(self._hold.new_entry(), job, self._hold.tables)

    def mark_sync(
        self, message: Message[Any, Any], metadata: str | None = None, timeout_s: float | None = None
    ) -> None:
        """Marks as `mark`, and waits until the broker holds the offset. Blocks up to `timeout_s` (None: 60 s).

        Raises:
            KafkaError: the broker refused; OperationTimeout: no answer in time; ClosedError, FencedError: as `mark`.
        """
        self.mark(message, metadata)
        self.commit(timeout_s)

    def commit(self, timeout_s: float | None = None) -> None:
        """Commits the stored offset and waits for the broker's answer. Blocks up to `timeout_s` (None: 60 s).

        Raises:
            KafkaError: the broker refused; OperationTimeout: no answer in time; ClosedError: not running;
            ConfigError: the route is exactly-once.
        """
        if self._hold.new_entry is not None:
            text = "an exactly-once route commits in transactions only: say with self.transaction() as t"
            raise ConfigError(text, "exactly_once")
        if self._hold.member is None:
            raise ClosedError("commit() needs a consumer that is assigned")
        self._hold.member.commit().wait(timeout_s)

    def committed(self) -> tuple[int, str | None] | None:
        """Returns the committed offset of this partition and its metadata, as the broker holds them. Blocks.

        Raises:
            KafkaError: the broker did not answer; FencedError: the partition was taken away meanwhile.
        """
        return self._assigned().committed()

    def pause(self) -> None:
        """Pauses the partition after the batch that runs now; `tick` goes on. Ends with `resume`, or with the
        assignment.

        Does not block. Any thread.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
        self._assigned().pause()

    def resume(self) -> None:
        """Ends a pause. Does not block. Any thread.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
        self._assigned().resume()

    def seek(self, to: int | datetime | Literal["earliest", "latest"]) -> None:
        """Seeks to an offset, to the first message at or after a time, or to an end, after the batch that runs now.

        The next committed offset may be less than the one before. Seeking to a time blocks, because the broker
        looks it up; seeking to anything else does not. Any thread.

        Raises:
            ConfigError: a time without a time zone, a negative offset; KafkaError: the broker did not answer;
            FencedError: the partition was taken away meanwhile.
        """
        assignment = self._assigned()
        if isinstance(to, datetime) and to.tzinfo is not None:
            assignment.seek(assignment.offset_at(int(to.timestamp() * 1_000)))
        elif isinstance(to, str) and to in SEEK_ENDS:
            assignment.seek(SEEK_ENDS[to])
        elif isinstance(to, int) and to >= 0:
            assignment.seek(to)
        else:
            text = f"seek takes 'earliest', 'latest', an offset or a datetime with a time zone, not {to!r}"
            raise ConfigError(text, "seek")
        self._hold.has_sought = True

    def _assigned(self) -> Partition:
        if self._hold.assignment is None:
            raise ClosedError("this needs a consumer that is assigned")
        return self._hold.assignment

    def _owned(self) -> Background:
        if self._hold.scope is None:
            raise ClosedError("this needs a consumer that is assigned")
        return self._hold.scope


def hold_of(consumer: Consumer) -> Hold:
    """Returns what a consumer holds of the runtime."""
    return consumer._hold


def give(consumer: Consumer, hold: Hold) -> None:
    """Gives a consumer what it is to hold of the runtime."""
    consumer._hold = hold
