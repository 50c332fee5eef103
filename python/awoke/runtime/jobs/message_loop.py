"""Calls the handler of a route with the messages of a job, one by one, and lets go of them.

librdkafka lends its memory to a job. User code that keeps a message, or a batch, beyond its job would keep
librdkafka's buffers and client alive. So the loop drops its references to them when the last call has returned. If the
batch is alive all the same, user code has kept it, and it is detached: its messages are copied. It is detached, too,
where user code has raised, because the exception keeps the frames that know the message.

What becomes of the results is the part of the route's `Strategy`. There is one loop for all strategies, and for `def`
and `async def`: only the latter's results are awaited.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import weakref
from collections.abc import Callable, Container
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

from awoke._native import Batch, Job, Message
from awoke.declare.handlers import check_ran, is_unfinished
from awoke.declare.routing import Route
from awoke.errors import FencedError
from awoke.observe.contexts import SENTRY, message_contexts
from awoke.observe.events import Events, MessageRepeated, MessagesExpired, MessagesFiltered
from awoke.observe.ledger import acting
from awoke.observe.tracing import Tracer
from awoke.runtime.failures.undecodable import Undecodable
from awoke.runtime.jobs.forked import end_child, forked
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.waiting.clock import wall_ms
from awoke.waiting.drive import drive, within

Results = TypeVar("Results")

Send = Callable[[Message[Any], Any], object]
"""Sends a value under the key of its message. A function of the engine's: for most results, no Python runs."""

Handler = Callable[[Message[Any]], Any]
"""Calls a handler with its message."""

value_of = operator.attrgetter("value")

NOTHING: frozenset[type] = frozenset()
"""The types of results that are sent as they are, where all are looked at."""

Lease = weakref.ref[Batch[Any]]
"""Refers to the batch that owns the memory. It is alive as long as any of its messages or parts is."""


class Strategy(Generic[Results]):
    """What becomes of the results of one route, and when its jobs are over. Any thread."""

    takes_nothing = False
    """True if `take` is also called with None."""
    is_done_when_passed = False
    """True if a message is done when its call has returned, and its job with the last one."""

    def begin(self, job: Job) -> tuple[Results, Container[type], Send]:
        """Prepares for the results of a job. Returns them, the types that are only sent, and what sends these."""
        raise NotImplementedError

    def make(self, message: Message[Any], result: Any) -> Any:
        """Turns a result into what is sent. If the app has a tracer, the loop calls this, within the message's span.

        Then `take` gets what this returns, instead of the result.
        """
        return result

    def take(self, results: Results, message: Message[Any], result: Any) -> None:
        """Takes a result of any other type."""
        raise NotImplementedError

    async def on_called(self, results: Results, job: Job, done_offset: int | None) -> bool:
        """Ends a job whose messages, up to `done_offset`, have been handled; returns whether it is over.

        Otherwise it ends later, by itself. Raises what its first message fails with.
        """
        raise NotImplementedError

    async def on_failed(self, results: Results, job: Job, done_offset: int | None, failed_offset: int | None) -> None:
        """Sees to the messages up to `done_offset`, which were handled before the one that has failed."""
        raise NotImplementedError


class MessageLoop:
    """Calls the handler of a route for each message of a job. Any thread."""

    def __init__(
        self,
        calls: HandlerCalls,
        tracer: Tracer | None,
        batches: LentBatches,
        strategy: Strategy[Any],
        first_only: Callable[[Handler], Handler] | None = None,
    ) -> None:
        function = within_span(calls, tracer, strategy.make)
        self._function = function if first_only is None else first_only(function)
        self._is_async, self._is_typed = calls.is_async, calls.is_typed
        self._batches, self._strategy = batches, strategy

    async def run(self, job: Job) -> bool:
        """Calls the handler for each message; returns whether the job is over. Raises what makes its message fail."""
        function, is_async, is_typed, strategy = self._function, self._is_async, self._is_typed, self._strategy
        take, takes_nothing = strategy.take, strategy.takes_nothing
        results, plain, send = strategy.begin(job)
        current, of_job = acting.get(), copy_context()
        assert current is not None
        has_scopes = SENTRY in sys.modules
        new_context = message_contexts(of_job) if has_scopes else of_job.copy
        # An async handler runs in the context of its task, until it has changed that: another one costs it 0.4 µs.
        is_in_task = is_async and not has_scopes
        message: Message[Any] | None = None
        context: Context | None = None
        run: Any = operator.call
        batch, lease = self._batches.of(job)
        try:
            for message in () if batch is None else job.each(batch, strategy.is_done_when_passed):
                current.message = message  # For the lines that the handler logs.
                if not is_in_task:
                    context = new_context()
                    run = context.run
                if is_typed:
                    run(value_of, message)  # A value that does not decode is the message's error, not the handler's.
                if (result := run(function, message)) is not None:
                    if is_async:
                        result = await (result if context is None else within(context, result))
                    if result is not None:
                        if type(result) in plain:
                            run(send, message, result)
                        else:
                            run(take, results, message, result)
                if takes_nothing and result is None:
                    run(take, results, message, None)
                if is_in_task:
                    is_in_task = is_still(of_job)
                if forked:
                    end_child()
        except BaseException:
            if forked:
                end_child()
            assert batch is not None
            batch.detach()
            result = run = None
            current.failed_in = context
            failed_offset = None if message is None else message.offset
            await strategy.on_failed(results, job, offset_before(batch, failed_offset), failed_offset)
            del results, send  # A kept exception keeps this frame: not what waits for other messages' results.
            raise
        finally:
            current.message = None
        is_over = strategy.is_done_when_passed
        done_offset = None if is_over or message is None else message.offset
        batch = message = result = context = run = None
        detach_kept(lease)
        return is_over or await strategy.on_called(results, job, done_offset)


def is_still(context: Context) -> bool:
    """Tells whether the running context has the variables of another one, with the same values."""
    try:
        return copy_context() == context
    except Exception:  # A value that can't be compared, as an array, is another one: the same is not compared.
        return False


def offset_before(batch: Batch[Any], offset: int | None) -> int | None:
    """Returns the offset of the message before another one; None for the first one, and without another one."""
    offsets = batch.offsets()
    place = 0 if offset is None else offsets.index(offset)
    return offsets[place - 1] if place > 0 else None


class NoOutput(Strategy[None]):
    """A handler without an output: a message is done when its call has returned."""

    is_done_when_passed = True

    def __init__(self, name: str) -> None:
        self._name = name

    def begin(self, job: Job) -> tuple[None, Container[type], Send]:
        """Returns that no result is sent."""
        return None, NOTHING, unsent

    def take(self, results: None, message: Message[Any], result: Any) -> None:
        """Drops a result. Raises HandlerDidNotRun for a coroutine or the like."""
        if is_unfinished(type(result)):  # type: ignore[arg-type]
            check_ran(result, self._name)

    async def on_failed(self, results: None, job: Job, done_offset: int | None, failed_offset: int | None) -> None:
        """Marks the messages before the failed one as done."""
        mark_done(job, done_offset)


def within_span(calls: HandlerCalls, tracer: Tracer | None, make: Send) -> Callable[..., Any]:
    """Returns the handler as it is; with a tracer, in a span of its own, within which `make` is called, too.

    It returns a coroutine where the handler is `async def`.
    """
    function, is_async, name = calls.function, calls.is_async, calls.name
    if tracer is None:
        return function

    async def flow(message: Message[Any]) -> Any:
        with tracer.message(message, name):
            result = function(message)
            if is_async:
                result = await result
            return make(message, result)

    return flow if is_async else lambda message: drive(flow(message))


def first_only_of(route: Route, events: Events) -> Callable[[Handler], Handler] | None:
    """Returns what has a handler called only for messages whose id did not come before; None where all are handled."""
    dedup, seen = route.dedup, route.seen
    if dedup is None or seen is None:
        return None

    def first_only(function: Handler) -> Handler:
        def called(message: Message[Any]) -> Any:
            id, current = dedup.id_of(message), acting.get()
            assert current is not None
            assert current.rows is not None
            if id is None or not current.rows[seen.name].sees(message.offset, message.raw_key, id):
                return function(message)
            topic, partition, offset = message.topic, message.partition, message.offset
            events.emit(MessageRepeated(handler=route.name, topic=topic, partition=partition, offset=offset))
            return None

        return called

    return first_only


def unsent(message: Message[Any], result: Any) -> None:
    """Stands for what sends values where none is sent without a look at it."""
    raise AssertionError("no type of result is sent as it is")


def mark_done(job: Job, offset: int | None) -> None:
    """Stores how far a failed job came. Does not block."""
    if offset is not None:
        with contextlib.suppress(FencedError):
            job.done(offset)


class LentBatches:
    """Makes the batches of one route's jobs. Any thread."""

    def __init__(self, route: Route, events: Events, undecodable: Undecodable) -> None:
        self._decoders, self._flow, self._skips_some = route.decoders, route.flow, route.skips_some
        self._events, self._undecodable = events, undecodable

    def of(self, job: Job) -> tuple[Batch[Any] | None, Lease]:
        """Returns the messages of a job that are to be processed, or None for none of them, and the lease.

        The caller drops its own references to batch and messages, and then calls `detach_kept`; or it detaches the
        batch where user code has raised, because the exception keeps the message.
        """
        if self._undecodable.offsets:
            self._undecodable.truncate(job)
        batch = job.batch(self._decoders)
        lease = weakref.ref(batch)
        return self._wanted(batch) if self._skips_some else batch, lease

    def _wanted(self, batch: Batch[Any]) -> Batch[Any] | None:
        now_ms = wall_ms()
        try:
            reasons = [copy_context().run(self._flow.skip_reason, message, now_ms) for message in batch]
        except BaseException:
            batch.detach()
            raise
        if (expired := reasons.count("expired")) > 0:
            self._events.emit(MessagesExpired(topic=batch.topic, count=expired))
        if (filtered := reasons.count("filtered")) > 0:
            self._events.emit(MessagesFiltered(topic=batch.topic, count=filtered))
        places = [place for place, reason in enumerate(reasons) if reason is None]
        if len(places) == len(reasons):
            return batch
        return batch.pick(places) if places else None


def lease_of(batch: Batch[Any]) -> Lease:
    """Returns the weak reference by which `detach_kept` finds a batch that is kept."""
    return weakref.ref(batch)


def detach_kept(lease: Lease) -> None:
    """Copies the messages of a batch that user code has kept. Does not block. The job itself holds no reference to
    it."""
    batch = lease()
    if batch is not None:
        batch.detach()
