"""The base of consumer classes: one instance for each topic-partition, for as long as it is assigned."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from awoke._native import Batch, GroupMember, Job, Message, Partition
from awoke.errors import ClosedError, ConfigError
from awoke.transaction import ConsumerTransaction, Contributing

if TYPE_CHECKING:
    from awoke.app import App

current_job: ContextVar[Job | None] = ContextVar("awoke_job", default=None)
"""The job whose `consume` runs here; several of one consumer may run at once."""

SEEK_ENDS = {"earliest": -2, "latest": -1}


class Stopping(Protocol):
    """Says that it is time to end. Any thread may wait for it."""

    def is_set(self) -> bool:
        """Whether it is time to end. Does not block."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is time to end, or the time is up; whether it is. Blocks."""


class Background(Protocol):
    """What a consumer owns beside its hooks."""

    @property
    def stopping(self) -> Stopping: ...

    def background(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        on_error: Literal["log", "fail", "restart"],
        name: str | None,
    ) -> None: ...


class Consumer:
    """Processes the messages of one topic-partition.

    Derive from it and decorate with `@app.consumer(topic)`. Its methods may be `async def`. They run one at a time and in
    order, on a worker of awoke's; there is no message of the partition between `revoked` and the next `assigned`, which
    another instance hears. Where its route has several jobs of a partition at once (`concurrency`), `consume` runs beside
    itself, and `tick` beside it.
    """

    app: App
    """The app that runs it."""
    topic: str
    partition: int
    _member: GroupMember | None = None
    _assignment: Partition | None = None
    _scope: Background | None = None
    _has_lanes: bool = False
    _has_sought: bool = False
    """Whether it has sought since it was made."""
    _contribution: Callable[[], Contributing] | None = None

    def assigned(self) -> Any:
        """Called before the first batch."""

    def consume(self, batch: Batch[Any]) -> Any:
        """Called for each batch; what it raises makes the batch be tried again, after what was marked."""
        raise NotImplementedError(f"{type(self).__qualname__} needs a method consume(self, batch)")

    def tick(self) -> Any:
        """Called every `tick_every_s` of the route, between batches, also while none comes."""

    def revoked(self) -> Any:
        """Called after the last batch, before the partition is given back; offsets are committed before and after."""

    def lost(self) -> Any:
        """Called when the partition was taken without asking: somebody else may have it already."""

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
        """Run a function on a thread that this consumer owns; a coroutine function as a task of an async consumer's loop.

        Where the function has a parameter `stop`, it gets the token that says when to end. After `revoked` or `shutdown`
        the token is set and the thread joined, a task cancelled. What the function raises is an event
        (`background.failed`) and, by `on_error`: `log` nothing more; `fail` fails the consumer's next batch; `restart`
        runs it again after a back-off. Does not block.

        Raises:
            ClosedError: the partition has been given back, or the consumer does not run yet.
        """
        self._owned().background(function, arguments, on_error, name)

    def mark(self, message: Message[Any], metadata: str | None = None) -> None:
        """Say that this message, and all before it in the batch, are done: should it fail, only the rest is tried again.

        `metadata` is written beside the offset. Does not block; the next commit brings it to the broker.

        Raises:
            ClosedError: the consumer does not run yet.
            FencedError: the partition was taken away meanwhile.
        """
        job = current_job.get()
        if job is not None:
            job.done(message.offset)
        elif self._has_lanes:
            raise ClosedError(
                "mark() of a consumer with several jobs at once belongs into consume, on its own thread or task"
            )
        if job is None or metadata is not None:
            self._assigned().annotate(message.offset + 1, metadata)

    def transaction(self) -> ConsumerTransaction:
        """Of a route with `exactly_once`: what is sent of the batch, and that it is done, are seen together or not at all.

        ```python
        def consume(self, batch):
            with self.transaction() as t:
                for message in batch:
                    t.produce("totals", self.add(message.value), key=message.key)
        ```

        Nothing leaves before the block ends: one that raises has sent nothing, and its messages are tried again in
        their place. At its end it waits until the transaction is committed, which others may share; `async with`
        awaits. The offset after the batch is committed, or, where messages were marked with `t.mark`, the offset after
        the last of those.

        Raises:
            ConfigError: the route is not exactly-once; ClosedError: outside of `consume`.
        Raises, at the end:
            KafkaError, MessageTooLarge: the broker refused a message, nothing was sent; FencedError: the partition was
            taken away meanwhile, nothing was sent; ProducerFenced; ClosedError: the process stops, nothing was sent.
        """
        if self._contribution is None:
            raise ConfigError("transaction() needs a route with exactly_once=True", "exactly_once")
        job = current_job.get()
        if job is None:
            raise ClosedError("transaction() belongs into consume, on its own thread or task")
        return ConsumerTransaction(self._contribution(), job)

    def mark_sync(self, message: Message[Any], metadata: str | None = None, timeout_s: float | None = None) -> None:
        """As `mark`, and wait until the broker holds it. Blocks up to `timeout_s` (None: 60 s).

        Raises:
            KafkaError: the broker refused; OperationTimeout: no answer in time; ClosedError, FencedError: as `mark`.
        """
        self.mark(message, metadata)
        self.commit(timeout_s)

    def commit(self, timeout_s: float | None = None) -> None:
        """Bring what is stored to the broker and wait for its answer. Blocks up to `timeout_s` (None: 60 s).

        Raises:
            KafkaError: the broker refused; OperationTimeout: no answer in time; ClosedError: not running;
            ConfigError: the route is exactly-once.
        """
        if self._contribution is not None:
            text = "an exactly-once route commits in transactions only: say with self.transaction() as t"
            raise ConfigError(text, "exactly_once")
        if self._member is None:
            raise ClosedError("commit() needs a consumer that is assigned")
        self._member.commit().wait(timeout_s)

    def committed(self) -> tuple[int, str | None] | None:
        """The offset that the broker holds for this partition, and the metadata beside it. Blocks.

        Raises:
            KafkaError: the broker did not answer; FencedError: the partition was taken away meanwhile.
        """
        return self._assigned().committed()

    def pause(self) -> None:
        """Take no batch after the one that runs now; `tick` goes on. Ends with `resume`, or with the assignment.

        Does not block. Any thread.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
        self._assigned().pause()

    def resume(self) -> None:
        """End a pause. Does not block. Any thread.

        Raises:
            FencedError: the partition was taken away meanwhile.
        """
        self._assigned().resume()

    def seek(self, to: int | datetime | Literal["earliest", "latest"]) -> None:
        """Go on from another offset, the first message at or after a time, or an end, after the batch that runs now.

        What is committed next may be less than what was committed before. Blocks for a time, which the broker has to look
        up; else not. Any thread.

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
        self._has_sought = True

    def _assigned(self) -> Partition:
        if self._assignment is None:
            raise ClosedError("this needs a consumer that is assigned")
        return self._assignment

    def _owned(self) -> Background:
        if self._scope is None:
            raise ClosedError("this needs a consumer that is assigned")
        return self._scope
