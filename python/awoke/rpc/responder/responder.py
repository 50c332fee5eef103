"""Executes the calls of a service, in one process of its app.

A call takes this way: the engine's admission control (who calls, may it, is there time; now or later) → `_run_call`, if
it is executed → `Endings` → its job ends when the reply is acknowledged, or with its transaction.

There is one thread more than may run methods at once, so that one of them always receives: a cancellation, an expired
call and one too many are seen while all others are busy. The thread that receives a call executes it, if it may run;
a thread that has ended one goes on with the next in the queue. A call that comes to an idle service changes threads
once.

A service whose methods are all `async def` has no such threads: the event loop receives its calls (`MethodLoop`).

Each thread `awoke-rpc-<number>`:
1. Wait for a call that may run, or is not to be executed.
2. Answer a call that is not to be executed.
3. Run the method of a call and answer it, or hand it to the thread of the event loop. Then take the next one in the
   queue.
4. End when the scheduler is closed.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any

from awoke import _native
from awoke._native import IncomingCall, StreamCredit
from awoke.declare.concurrency import Lanes
from awoke.errors import AwokeError
from awoke.observe.events import Events
from awoke.payloads.formats import json
from awoke.rpc import protocol
from awoke.rpc.context import call_all, current
from awoke.rpc.errors import FailedPrecondition, ResourceExhausted, Unavailable, streaming_error
from awoke.rpc.protocol import ServiceTopics
from awoke.rpc.responder.endings import Endings, PartitionWithdrawn, out_of_time
from awoke.rpc.responder.host import ResponderHost
from awoke.rpc.responder.method_loop import MethodLoop
from awoke.rpc.responder.methods import Options, Rpc
from awoke.rpc.responder.schema_loads import SchemaLoads
from awoke.rpc.topics import ReplyTopics
from awoke.settings import client_properties
from awoke.text.durations import duration
from awoke.waiting.clock import monotonic_s, timeout
from awoke.waiting.drive import ResultOf, drive, elsewhere, until

logger = logging.getLogger(__name__)

IN_FLIGHT = 10_000
"""Most calls of one partition that were received and have not ended."""

COMMIT_GAP_MAX = 100_000
"""Most requests of one partition from the first that has not ended to the last that was received."""

COMMIT_TIMEOUT_S = 10.0
"""Time to commit the offset of an at-most-once call before it is executed."""

LOOK_AGAIN_S = 0.2
"""A call whose reply partition is being looked up is read again after this time."""


class Responder:
    """Executes the calls of a service. `start` and `close` are called once; its threads do the rest."""

    def __init__(self, host: ResponderHost, rpc: Rpc, events: Events, box: _native.EventBox) -> None:
        rpc.prepare(host.app.schemas)
        host.app.schemas.check()
        self._host, self._rpc, self._events = host, rpc, events
        self._options = options = rpc.settings
        self.topics = ServiceTopics.of(rpc.service)
        self.scheduler = _native.Scheduler()
        self.route = self._make_route()
        properties = client_properties(host.settings, **{**protocol.LINGER, **host.settings.kafka})
        produce_timeout_s = host.settings.produce_timeout_s
        self._producer = _native.Producer(properties, json.encode, produce_timeout_s, None, box, for_calls=True)
        self._reply_topics = ReplyTopics(host.settings, {self.topics.replies, *options.reply_topics})
        self._admission = _native.Admission(
            self.scheduler, options, self.topics.calls, list(rpc.methods.values()), box, call_all
        )
        self._admission.set_reply_topics(self._reply_topics.look_up())
        self._replies = _native.CallReplies(self._producer)
        self._endings = Endings(host, rpc, events, self._replies, self._admission)
        self._schema_loads = SchemaLoads(host.app.schemas, events)
        self._credit_waits = CreditWaits(options)
        if host.call_log is not None:
            host.call_log.count = self.counts
        self._threads: list[threading.Thread] = []
        self._loop: MethodLoop | None = None

    def _make_route(self) -> _native.Route:
        return _native.Route(
            self.topics.calls,
            self.scheduler,
            messages_max=IN_FLIGHT,
            bytes_max=self._options.waiting_bytes_max,
            start=self._rpc.reads_from,
            concurrency=Lanes("key", self._options.threads + 1, IN_FLIGHT, COMMIT_GAP_MAX, "one", IN_FLIGHT),
            is_transactional=self._options.mode == "exactly_once",
            request_clock_skew_s=self._options.clock_skew_s,
            partitions=self._rpc.reads_partitions,
        )

    def start(self) -> None:
        """Starts the threads. Calls come once the group has assigned partitions. Does not block."""
        are_async = [method.is_async for method in self._rpc.methods.values()]
        if any(are_async):
            self._loop = MethodLoop(
                self._admission, self._run_call, self._host.stop_app, self._host.contexts.new, self._events
            )
            self._threads.append(self._loop.thread)
        if self._loop is not None and all(are_async):
            self._loop.receive(self._receive_on_loop)
        else:
            for number in range(self._options.threads + 1):
                self._threads.append(threading.Thread(target=self._run, name=f"awoke-rpc-{number}", daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self, deadline_s: float) -> list[threading.Thread]:
        """Ends the threads and delivers the replies; returns threads that still run at the deadline. Blocks."""
        self.scheduler.close()
        if self._loop is not None:
            self._endings.is_closing = True
            self._loop.close()
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        self._reply_topics.close(deadline_s)
        self._producer.close(max(1.0, deadline_s - time.monotonic()))
        return [thread for thread in started if thread.is_alive()]

    def threads(self) -> list[threading.Thread]:
        """Returns the threads that run methods. Does not block."""
        return list(self._threads)

    def counts(self) -> dict[str, int]:
        """Returns how many calls run, wait in the queue, and were skipped because they had expired. Does not block."""
        running, waiting = self._admission.counts()
        return {"running": running, "waiting": waiting, "expired": self.route.expired}

    # A call is received.

    def _run(self) -> None:
        while True:
            try:
                call = self._admission.next()
            except Exception:
                logger.exception("a call could not be received")
                continue
            if call is None:
                return
            reason = call.not_executed
            if reason is not None:
                self._end_not_executed(call, *reason)
                call = None  # A call that is over must not wait for the next one to be freed.
            while call is not None:
                call = self._execute(call)

    def _receive_on_loop(self, call: IncomingCall) -> None:
        assert self._loop is not None
        reason = call.not_executed
        if reason is not None:
            self._end_not_executed(call, *reason)
        else:
            self._replies.leave_slot(call)
            self._loop.begin(call)

    def _end_not_executed(self, call: IncomingCall, kind: str, reason: str) -> None:
        try:
            set_topics = self._admission.set_reply_topics
            if reason == "reply_partition" and self._reply_topics.is_looking_again(set_topics):
                self._replies.give_back(call, LOOK_AGAIN_S)  # The partition may be new.
            else:
                self._endings.end_unexecuted(call, kind, reason)
        except BaseException:
            logger.exception("a call could not be answered (%s, %s); it is read again", kind, reason)
            self._endings.give_back(call, 1.0)

    # A call is executed.

    def _execute(self, call: IncomingCall) -> IncomingCall | None:
        """Executes a call that has a place; returns the call that gets the place next. Blocks as user code does."""
        loop = self._loop
        if loop is not None and call.target.is_async:
            self._replies.leave_slot(call)
            loop.begin_soon(call)
            return None
        self._host.contexts.new().run(drive, self._run_call(call))
        return self._admission.release(call)

    async def _run_call(self, call: IncomingCall) -> None:
        """Begins a call, runs its method, and ends it. A flow; raises nothing."""
        try:
            if not await self._begin(call):
                return
            result, method = await self._call_method(call), call.target
            if method.is_stream:
                self._endings.reply(call, protocol.END, b"")
            else:
                body = method.written(result) if method.result_form is None else await self._body(call, result)
                self._endings.reply(call, protocol.REPLY, body)
        except BaseException as error:
            self._endings.fail(call, error)

    async def _begin(self, call: IncomingCall) -> bool:
        """Begins a call whose turn has come; returns whether it is to be executed. Commits its offset first, if it
        must."""
        reason = self._replies.begin(call)
        if reason == "fenced":
            self._endings.give_back(call)
            return False
        if reason is not None:
            self._endings.reject(call, reason)
            return False
        mode = self._options.mode
        if mode == "at_most_once":
            await elsewhere(self._commit, call)
        elif mode == "exactly_once":
            assert self._host.transactions is not None
            call.transaction_entry = self._host.transactions.entry()
        return True

    def _commit(self, call: IncomingCall) -> None:
        """Commits the offset of a call, which is then not executed again, whatever happens. Blocks."""
        job = self._replies.take_job(call)
        assert job is not None
        assert self._host.member is not None
        try:
            assignment = job.assignment()
            job.complete()
            self._host.member.commit().wait(COMMIT_TIMEOUT_S)
        except AwokeError as error:
            raise Unavailable(f"the call was not executed: its offset could not be committed: {error}") from None
        if not assignment.is_current:  # The offset may have been dropped with the partition, and not committed.
            raise Unavailable("the call was not executed: its partition was taken away")

    async def _call_method(self, call: IncomingCall) -> Any:
        token, tracer, log = current.set(call), self._host.tracer, self._host.call_log
        if log is not None:
            log.began(call)
        cleanups, is_async = self._host.app.cleanups, call.target.is_async
        call.start()
        try:
            if cleanups.has_any:
                await cleanups.call(is_async=is_async)
            if tracer is None:
                return await self._run_method(call)
            with tracer.message(call.message, call.method):
                return await self._run_method(call)
        finally:
            call.stop()
            if log is not None:
                log.left(call)
            try:
                if cleanups.has_any:
                    await cleanups.end(is_async=is_async)
            finally:
                current.reset(token)

    async def _run_method(self, call: IncomingCall) -> Any:
        method = call.target
        if method.is_stream:
            check_wants_stream(call)
        if method.is_async:
            async with timeout(call.remaining_s):
                return await self._await_method(call)
        arguments = method.arguments(call.body) if method.is_json else await self._arguments(call)
        result = method.function(**arguments)
        if method.is_stream:
            await self._send_all(call, as_async(result))
            return None
        return result

    async def _await_method(self, call: IncomingCall) -> Any:
        method = call.target
        arguments = method.arguments(call.body) if method.is_json else await self._arguments(call)
        result = method.function(**arguments)
        if method.is_stream:
            await self._send_all(call, result)
            return None
        return await result

    async def _arguments(self, call: IncomingCall) -> dict[str, Any]:
        """Returns the arguments of a call. What their format and that of the result need is loaded before."""
        method, loads = call.target, self._schema_loads
        if method.result_form is not None:
            await loads.run_before(call, method.check_result_loaded)
        if method.argument_form is None:
            return method.arguments(call.body)  # type: ignore[no-any-return]
        return await loads.run_before(call, method.arguments, call.body)  # type: ignore[no-any-return]

    async def _body(self, call: IncomingCall, result: Any) -> bytes:
        """Returns a result as a body. The schema that its format needs is loaded."""
        if call.target.result_form is None:
            return call.target.written(result)  # type: ignore[no-any-return]
        return await self._schema_loads.run(call, call.target.written, result)  # type: ignore[no-any-return]

    async def _send_all(self, call: IncomingCall, results: AsyncGenerator[Any, None]) -> None:
        """Sends the results of a stream as fast as its caller takes them. However it ends, the generator is closed.

        Raises:
            DeadlineExceeded: its time is over; a stream that is cut off must not look complete. PartitionWithdrawn,
                Unavailable: as in `_wait_for_credit`.
        """
        async with contextlib.aclosing(results):
            async for result in results:
                if not call.is_cancelled:
                    await self._wait_for_credit(call)
                if call.is_cancelled:
                    break
                self._endings.send(call, protocol.ITEM, await self._body(call, result))
            else:
                return
        if not call.was_cancelled:
            raise out_of_time(call)

    async def _wait_for_credit(self, call: IncomingCall) -> None:
        """Waits until one more result may be sent, and takes its credit; until the call is cancelled at most.

        Raises:
            FailedPrecondition: the caller has granted none within `credit_wait_s`. ResourceExhausted: too many streams
                wait. PartitionWithdrawn: no more is granted here, because the partition is given back. Unavailable: the
                same, and the call is not executed again.
        """
        # No result is sent without a reply address, and none before the commit in a transaction.
        if call.transaction_entry is not None or call.reply_to is None:
            return
        credit = call.credit
        assert credit is not None
        if credit.try_take() or call.is_cancelled:
            return
        until_s = monotonic_s() + self._options.credit_wait_s
        with self._credit_waits.place(is_async=call.target.is_async):
            while not credit.try_take() and not call.is_cancelled:
                if not credit.is_withdrawn:
                    if (left_s := until_s - monotonic_s()) <= 0:
                        text = (
                            f"the caller has granted no further result within {duration(self._options.credit_wait_s)}"
                        )
                        raise FailedPrecondition(text)
                    await until(CreditWait(credit, left_s))
                elif self._options.mode == "at_most_once":
                    raise Unavailable("the stream was cut off: its partition was taken away")
                else:
                    raise PartitionWithdrawn


class CreditWait:
    """Waits until a stream has credit, or none will come, or the time is over."""

    def __init__(self, credit: StreamCredit, within_s: float) -> None:
        self._credit, self._within_s = credit, within_s

    def wait(self) -> None:
        """Waits on the calling thread."""
        self._credit.wait(self._within_s)

    def __await__(self) -> Generator[Any, Any, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with timeout(self._within_s):
                await ResultOf(self._credit)


class CreditWaits:
    """Bounds the streams that wait for their callers: a share of the threads, and of the tasks. Any thread."""

    def __init__(self, options: Options) -> None:
        self._most = {False: max(1, options.threads // 2), True: max(1, options.tasks // 2)}
        self._waiting = {False: 0, True: 0}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def place(self, *, is_async: bool) -> Iterator[None]:
        """Counts a stream that waits within the block.

        Raises:
            ResourceExhausted: too many wait: other calls need the threads.
        """
        with self._lock:
            if self._waiting[is_async] >= self._most[is_async]:
                what = "tasks" if is_async else "threads"
                text = f"{self._most[is_async]} streams wait for their callers, half of the {what} of the process"
                raise ResourceExhausted(f"{text}: the stream was cut off; read streams as they come")
            self._waiting[is_async] += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[is_async] -= 1


async def as_async(results: Generator[Any, None, None]) -> AsyncGenerator[Any, None]:
    """Gives the results of a generator, and closes it in the end."""
    with contextlib.closing(results):
        for result in results:
            yield result


def check_wants_stream(call: IncomingCall) -> None:
    """Refuses a call that wants one result of a method that returns a stream, before the method is executed.

    Raises:
        InvalidArgument: the request names no credit.
    """
    if call.reply_to is not None and (call.credit is None or not call.credit.is_named):
        raise streaming_error(call.method)
