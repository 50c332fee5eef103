"""Answers the calls of a service, in one process of its app.

A call goes: `_receive` (who calls, may they, is there time) → `Turnstile` (now, or in line) → `_carry_out` → `_answer` → the
job ends when the reply is acknowledged, or with the transaction that it is part of.

There is one thread more than may run methods at once, so that one of them always receives: a cancellation, a call whose
time is over and one too many are seen though all others are busy. Whoever receives a call carries it out itself, if it
may; whoever ends one goes on with the next in line. So a call that comes to an idle service changes threads once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

from awoke import _native, serde
from awoke._native import Batch, DeliveryHandle, HookJob, Job, Message, PendingCommit
from awoke._waiting import call_back
from awoke.concurrency import Lanes
from awoke.errors import AwokeError, ClosedError, EncodeError, FencedError, MessageTooLarge, ProducerFenced, RpcError
from awoke.events import Events
from awoke.rpc import protocol
from awoke.rpc.context import current
from awoke.rpc.errors import (
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)
from awoke.rpc.methods import Rpc
from awoke.rpc.protocol import Topics
from awoke.rpc.results import Result, Results
from awoke.rpc.turnstile import Turnstile
from awoke.rpc.work import Contribution, Request, Work
from awoke.settings import Settings, client_properties

logger = logging.getLogger(__name__)

IN_FLIGHT = 10_000
"""Calls of one partition that are taken in and not done."""

TRAIL = 100_000

RETRY_S = 0.2
"""A call whose reply was refused is carried out again after so long, if its caller still waits."""

COMMIT_TIMEOUT_S = 10.0

PATIENCE_S = 0.01
"""So long acknowledgements of replies may lie: nobody waits for them, and many cost no more than one."""

REMEMBERED = 100_000
"""Names of calls that are remembered: of signed ones, and of cancelled ones that have not come yet."""


class Transactions(Protocol):
    """Makes contributions."""

    def contribution(self) -> Contribution: ...


class Tracer(Protocol):
    """Makes spans."""

    def message(self, message: Message[Any], handler: str) -> contextlib.AbstractContextManager[None]: ...


class Metrics(Protocol):
    """Counts."""

    def call_ended(self, method: str, outcome: str, queue_s: float, run_s: float) -> None: ...
    def reply_acknowledged(self, method: str, reply_s: float) -> None: ...
    def call_refused(self, reason: str) -> None: ...


class Host(Protocol):
    """The process that answers."""

    @property
    def settings(self) -> Settings: ...
    @property
    def member(self) -> _native.GroupMember | None: ...
    @property
    def transactions(self) -> Transactions | None: ...
    @property
    def tracer(self) -> Tracer | None: ...
    @property
    def metrics(self) -> Metrics | None: ...
    def give_up(self, error: BaseException) -> None: ...


class Refused(Exception):
    """A record that is not answered: its sender may not be who it says."""


class Responder:
    """Answers the calls of a service. `start` and `close` once; the rest is its threads'."""

    def __init__(self, host: Host, rpc: Rpc, events: Events, box: _native.EventBox) -> None:
        rpc.prepare()
        self._host, self._rpc, self._events = host, rpc, events
        self._options = options = rpc.settings
        self.topics = Topics.of(rpc.service)
        self._reply_topics = {self.topics.replies, *options.reply_topics}
        self.scheduler = _native.Scheduler()
        self.route = self._make_route()
        properties = client_properties(host.settings, **{"linger.ms": "0", **host.settings.kafka})
        self._producer = _native.Producer(
            properties, serde.encode, host.settings.produce_timeout_s, None, box, PATIENCE_S
        )
        self._for_threads = Turnstile(options.threads, options.waiting_max, options.waiting_bytes_max)
        self._for_tasks = Turnstile(options.tasks, options.waiting_max, options.waiting_bytes_max)
        self._results: Results[Work] = Results(options.results_max, options.results_bytes_max, options.results_ttl_s)
        self._open: dict[bytes, Work] = {}
        """Calls that wait or run, by the names that their callers gave them."""
        self._places = Remembered()
        """Where signed requests stand in the log."""
        self._cancelled = Remembered()
        """Calls that were cancelled before they came."""
        self._threads: list[threading.Thread] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def _make_route(self) -> _native.Route:
        return _native.Route(
            self.topics.calls,
            self.scheduler,
            messages_max=IN_FLIGHT,
            bytes_max=self._options.waiting_bytes_max,
            start=("earliest", 0),
            concurrency=Lanes("key", self._options.threads + 1, IN_FLIGHT, TRAIL, False, IN_FLIGHT),
            is_transactional=self._options.mode == "exactly_once",
            expires_by=(protocol.DEADLINE, self._options.clock_skew_s),
        )

    def start(self) -> None:
        """Start the threads. Calls come when the group gives partitions out."""
        methods = self._rpc.methods.values()
        if any(method.is_async for method in methods):
            self._loop = asyncio.new_event_loop()
            self._threads.append(threading.Thread(target=self._run_loop, name="awoke-rpc-loop", daemon=True))
        for number in range(self._options.threads + 1):
            self._threads.append(threading.Thread(target=self._run, name=f"awoke-rpc-{number}", daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self, deadline_s: float) -> list[threading.Thread]:
        """End the threads, and deliver what was sent; those that are still running at the deadline. Blocks."""
        self.scheduler.close()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel_tasks)
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        self._producer.close(max(1.0, deadline_s - time.monotonic()))
        return [thread for thread in started if thread.is_alive()]

    def counts(self) -> dict[str, int]:
        """How many calls run, wait, and were passed over because nobody wanted them any more. Does not block."""
        return {
            "running": self._for_threads.running + self._for_tasks.running,
            "waiting": self._for_threads.waiting + self._for_tasks.waiting,
            "expired": self.route.expired,
        }

    # A call comes.

    def _run(self) -> None:
        while (work := self.scheduler.next()) is not None:
            if isinstance(work, Job):
                self._take(work)
            elif isinstance(work, HookJob):
                work.finish()
            del work  # A job that is over must not wait for the next one to be freed.

    def _take(self, job: Job) -> None:
        try:
            work = self._receive(job)
        except Exception:
            logger.exception("a call could not be received; it is tried again")
            job.retry(1.0)
            return
        while work is not None:
            work = self._carry_out(work)

    def _receive(self, job: Job) -> Work | None:
        """Look at what has come; the call, if it is to be carried out here and now."""
        job.cut(1)
        batch = job.batch()
        message = batch[0]
        try:
            if batch.size_bytes > self._options.request_bytes_max:
                raise Refused("huge")
            request = Request(message, batch.size_bytes, self._options.clock_skew_s)
            if self._options.secret is not None:
                self._check_genuine(self._options.secret, request, message)
            work = self._read(request, batch, message, job)
        except Refused as refused:
            self._refuse(str(refused), job)
            return None
        except ValueError:
            self._refuse("undecodable", job)
            return None
        if work is None:
            complete(job)
            return None
        try:
            if self._admit(work):
                return work
        except RpcError as error:
            self._turn_away(work, error)
        else:
            work.let_go_of_memory()
        return None

    def _check_genuine(self, secret: bytes, request: Request, message: Message[Any]) -> None:
        if not protocol.is_signed(secret, dict(message.headers), message.raw_value or b""):
            raise Refused("forged")
        # What comes again from its own place was not answered; in another place, somebody has copied it.
        place = (message.partition, message.offset)
        name = b"%b %b" % (request.id, request.kind.encode())
        if request.kind != protocol.MORE and self._places.first(name, place) != place:
            raise Refused("replayed")

    def _read(self, request: Request, batch: Batch[Any], message: Message[Any], job: Job) -> Work | None:
        """A record as a call; None for what is about another one."""
        found = self._open.get(request.id)
        match request.kind:
            case protocol.CANCEL:
                if found is None:
                    self._cancelled.first(request.id, True)
                else:
                    found.call.cancel()
                return None
            case protocol.MORE:
                if found is not None and found.window is not None:
                    found.window.add(request.credit or 0)
                return None
            case protocol.CALL | protocol.CAST:
                if request.reply_topic is not None and request.reply_topic not in self._reply_topics:
                    raise Refused("reply_topic")
                return Work(request, batch, message, job)
            case _:
                raise Refused("undecodable")

    def _refuse(self, reason: str, job: Job) -> None:
        self._events.emit("rpc.refused", reason=reason, partition=job.partition, offset=job.first_offset)
        if self._host.metrics is not None:
            self._host.metrics.call_refused(reason)
        complete(job)

    def _admit(self, work: Work) -> bool:
        """Whether a call is to be carried out now; else somebody does later, or it is answered.

        Raises:
            RpcError: it is not to be carried out.
        """
        request, options = work.request, self._options
        if request.left_s <= 0 or self._cancelled.forget(request.id):
            raise DeadlineExceeded("its caller waits no more")
        method = self._rpc.methods.get(request.method)
        if method is None:
            raise Unimplemented(f"service {self._rpc.service!r} has no method {request.method[:128]!r}")
        work.has_method(method)
        if method.callers is not None and request.caller not in method.callers:
            raise PermissionDenied(f"{request.caller[:128]!r} may not call {method.name}")
        if request.left_s > options.timeout_max_s:
            text = f"its deadline is {request.left_s:.0f} s away, allowed are {options.timeout_max_s:g} s"
            raise InvalidArgument(text)
        self._check_patience(request, request.left_s)
        if request.idempotency_key is not None and not self._is_new(work, request.idempotency_key):
            return False
        self._open[request.id] = work
        try:
            is_its_turn = (self._for_tasks if work.is_async else self._for_threads).enter(work)
        except ResourceExhausted as error:
            error.retry_after_s = options.retry_after_s
            raise
        if not is_its_turn and work.job is not None:
            work.job.step_aside(False)
        return is_its_turn

    def _check_patience(self, request: Request, left_s: float) -> None:
        budget_s, options = request.budget_s, self._options
        if left_s < budget_s * (1 - options.patience):
            text = f"the call spent more than {options.patience:.0%} of its {budget_s:g} s in queues"
            raise ResourceExhausted(text, retry_after_s=options.retry_after_s)

    def _is_new(self, work: Work, idempotency_key: bytes) -> bool:
        """Whether nobody has carried out, or is carrying out, the same call; else it is answered with that one."""
        if work.is_stream or self._options.results_max == 0:
            return True
        key = b"\0".join([work.request.caller.encode(), work.request.method.encode(), idempotency_key])
        known = self._results.begin(key, work)
        if known is True:
            work.result_key = key
            return True
        if isinstance(known, Result):
            self._send(work, known.kind, known.body, known.code)
            self._end(work, "known")
        elif work.job is not None:
            work.job.step_aside(False)
        return False

    def _turn_away(self, work: Work, error: RpcError) -> None:
        self._answer(work, protocol.ERROR, protocol.problem_of(error), error.code)

    # It is carried out.

    def _carry_out(self, work: Work) -> Work | None:
        """Carry out a call whose turn it is; the next one, whose turn comes with its end. Blocks as user code does."""
        loop = self._loop
        if work.is_async and loop is not None:
            if work.job is not None:
                work.job.step_aside(True)
                work.let_go_of_memory()
            loop.call_soon_threadsafe(self._begin_task, work)
            return None
        try:
            if self._begin(work):
                result = self._call(work)
                self._answer_result(work, result)
        except BaseException as error:
            self._answer_error(work, error)
        return self._for_threads.leave(work)

    def _call(self, work: Work) -> Any:
        token, tracer = current.set(work.call), self._host.tracer
        try:
            if tracer is None:
                return self._run_method(work)
            with tracer.message(work.message, work.method.name):
                return self._run_method(work)
        finally:
            work.ran_s = time.perf_counter() - work.began_s
            current.reset(token)

    def _run_method(self, work: Work) -> Any:
        result = work.method.function(**work.arguments())
        if work.is_stream:
            self._send_all(work, result)
        return result

    def _begin_task(self, work: Work) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._carry_out_async(work))
        work.call.when_cancelled(partial(self._cancel_task, task))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _cancel_task(self, task: asyncio.Task[None]) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # The loop is over, and with it the task.
            self._loop.call_soon_threadsafe(task.cancel)

    async def _carry_out_async(self, work: Work) -> None:
        """As `_carry_out`."""
        try:
            must_commit_first = self._options.mode == "at_most_once"
            if await asyncio.to_thread(self._begin, work) if must_commit_first else self._begin(work):
                result = await self._call_async(work)
                self._answer_result(work, result)
        except asyncio.CancelledError:
            self._answer_error(work, Unavailable("the responder has stopped"))
        except TimeoutError as error:
            is_late = work.call.remaining_s <= 0
            self._answer_error(work, DeadlineExceeded(f"{work.method.name} took too long") if is_late else error)
        except BaseException as error:
            self._answer_error(work, error)
        following = self._for_tasks.leave(work)
        if following is not None and not self._is_closing:
            self._begin_task(following)

    async def _call_async(self, work: Work) -> Any:
        token, tracer = current.set(work.call), self._host.tracer
        try:
            if tracer is None:
                return await self._run_method_async(work)
            with tracer.message(work.message, work.method.name):
                return await self._run_method_async(work)
        finally:
            work.ran_s = time.perf_counter() - work.began_s
            current.reset(token)

    async def _run_method_async(self, work: Work) -> Any:
        async with asyncio.timeout(work.call.remaining_s):
            result = work.method.function(**work.arguments())
            if not work.is_stream:
                return await result
            await self._send_all_async(work, result)
            return None

    def _begin(self, work: Work) -> bool:
        """Whether a call is still to be carried out, now that its turn has come. Blocks to commit its offset first."""
        job = work.job
        if job is not None:
            job.hold_partition()
            if job.is_fenced:
                self._abandon(work)
                return False
        if work.call.is_cancelled:
            raise DeadlineExceeded("its caller waits no more")
        self._check_patience(work.request, work.caller_left_s)
        if work.method.deadline_s is not None:
            work.call.until_s = min(work.call.until_s, time.monotonic() + work.method.deadline_s)
        if self._options.mode == "at_most_once":
            self._commit(work)
        elif self._options.mode == "exactly_once":
            assert self._host.transactions is not None
            work.call.contribution = work.contribution = self._host.transactions.contribution()
        work.began_s = time.perf_counter()
        return True

    def _commit(self, work: Work) -> None:
        """From here on the call is not carried out again, whatever happens."""
        job, work.job = work.job, None
        assert job is not None
        assert self._host.member is not None
        try:
            job.complete()
            self._host.member.commit().wait(COMMIT_TIMEOUT_S)
        except AwokeError as error:
            raise Unavailable(f"the call was not carried out: its offset could not be committed: {error}") from None

    def _send_all(self, work: Work, results: Iterator[Any]) -> None:
        """The results of a generator, as fast as its caller takes them."""
        for result in results:
            if work.contribution is None and work.window is not None and not work.window.take(work.call):
                results.close()  # type: ignore[attr-defined]
                return
            self._send(work, protocol.ITEM, encoded(result))

    async def _send_all_async(self, work: Work, results: Any) -> None:
        """As `_send_all`."""
        async for result in results:
            window = None if work.contribution is not None else work.window
            if window is not None and not await window.take_async(work.call):
                await results.aclose()
                return
            self._send(work, protocol.ITEM, encoded(result))

    # It is answered.

    def _answer_result(self, work: Work, result: Any) -> None:
        if work.is_stream:
            self._answer(work, protocol.END, b"", None)
        else:
            self._answer(work, protocol.REPLY, encoded(result), None)

    def _answer_error(self, work: Work, error: BaseException) -> None:
        """Raises nothing: whoever calls it has others to look after."""
        try:
            self._tell_error(work, error)
        except Exception:
            logger.exception("a call of %s could not be answered; it is carried out again", work.request.method)
            self._abandon(work)
        if not isinstance(error, Exception):
            self._host.give_up(error)

    def _abandon(self, work: Work) -> None:
        """Neither carried out nor answered: whoever has the partition then does it, and what waits for the same, too."""
        self._forget(work)
        others = [] if work.result_key is None else self._results.finish(work.result_key, None)
        for each in (work, *others):
            if each.job is not None:
                each.job.retry(0.0)

    def _tell_error(self, work: Work, error: BaseException) -> None:
        told = self._rpc.error_of(error)
        if work.contribution is not None and self._host.transactions is not None:
            work.contribution = self._host.transactions.contribution()  # What it sent before it failed is not sent.
        trace = None
        if told is not error and isinstance(told, Internal):
            logger.error("rpc method %s failed", work.request.method, exc_info=error)
            trace = "".join(traceback.format_exception(error)) if self._options.tracebacks else None
        if not isinstance(error, RpcError):
            self._events.emit("rpc.failed", method=work.request.method, caller=work.request.caller, error=error)
        try:
            body = protocol.problem_of(told, trace)
        except EncodeError:
            told.details = None  # They can't be written as JSON; what happened can.
            body = protocol.problem_of(told, trace)
        self._answer(work, protocol.ERROR, body, told.code)

    def _answer(self, work: Work, kind: str, body: bytes, code: str | None) -> None:
        """The last reply of a call, to it and to whoever waits for the same; then its job ends."""
        self._forget(work)
        self._answer_one(work, kind, body, code)
        if work.result_key is not None:
            result = None if kind == protocol.ERROR else Result(kind, body)
            for each in self._results.finish(work.result_key, result):
                self._answer_one(each, kind, body, code)

    def _answer_one(self, work: Work, kind: str, body: bytes, code: str | None) -> None:
        try:
            self._send(work, kind, body, code)
            self._end(work, code or "ok")
        except AwokeError as error:
            self._on_not_sent(work, error)

    def _send(self, work: Work, kind: str, body: bytes, code: str | None = None) -> None:
        if work.contribution is None and self._host.transactions is not None and self._options.mode == "exactly_once":
            work.contribution = self._host.transactions.contribution()
        topic, partition = work.request.reply_topic, work.request.reply_partition
        if topic is None or work.caller_left_s <= 0 or work.call.was_given_up:
            return  # Nobody wants it, or nobody does any more.
        headers: list[tuple[str, bytes | str | None]] = [
            (protocol.KIND, kind),
            (protocol.ID, work.request.id),
            (protocol.TIMES, f"{int(work.request.queued_s * 1e6)},{int(work.ran_s * 1e6)}"),
        ]
        if work.is_stream:
            headers.append((protocol.SEQUENCE, str(work.sequence)))
            work.sequence += 1
        if code is not None:
            headers.append((protocol.CODE, code))
        if self._options.secret is not None:
            headers.append((protocol.SIGNATURE, protocol.sign_reply(self._options.secret, headers, body)))
        if work.contribution is not None:
            work.contribution.produce(topic, body, partition=partition, headers=headers)
            return
        try:
            work.last = self._producer.produce(topic, body, partition=partition, headers=headers)
        except MessageTooLarge as error:
            if kind == protocol.ERROR:
                raise
            told = ResourceExhausted(f"the reply is too large: {error}", is_retryable=False)
            self._send(work, protocol.ERROR, protocol.problem_of(told), told.code)

    def _end(self, work: Work, outcome: str) -> None:
        """Nothing more is sent for a call."""
        work.let_go_of_memory()
        metrics, job = self._host.metrics, work.job
        if metrics is not None:
            metrics.call_ended(work.request.method if work.is_known else "", outcome, work.request.queued_s, work.ran_s)
            if work.last is not None:
                call_back(work.last, partial(self._on_acknowledged, work.request.method, time.perf_counter()))
        if job is None:
            return
        if work.contribution is not None:
            self._contribute(work, work.contribution, job)
        elif work.last is not None:
            job.complete_when(work.last, RETRY_S)
        else:
            complete(job)

    def _on_acknowledged(self, method: str, sent_s: float, _: DeliveryHandle) -> None:
        if self._host.metrics is not None:
            self._host.metrics.reply_acknowledged(method, time.perf_counter() - sent_s)

    def _contribute(self, work: Work, contribution: Contribution, job: Job) -> None:
        job.step_aside(True)
        try:
            committed = contribution.submit(job, None)
        except (ClosedError, FencedError):
            job.retry(0.0)  # Whoever has the partition next does it again.
        else:
            call_back(committed, partial(self._on_committed, job))

    def _on_committed(self, job: Job, committed: PendingCommit) -> None:
        """On a thread of awoke's that runs no other user code."""
        try:
            committed.result()
        except (ClosedError, FencedError):
            job.retry(0.0)
        except ProducerFenced as error:
            job.retry(0.0)
            self._host.give_up(error)
        except Exception as error:
            logger.warning("a reply was not committed, its call is carried out again: %s", error)
            job.retry(RETRY_S)
        else:
            complete(job)

    def _on_not_sent(self, work: Work, error: AwokeError) -> None:
        logger.warning("the reply to a call of %s could not be sent: %s", work.request.method, error)
        if work.job is not None:
            work.job.retry(RETRY_S)

    def _forget(self, work: Work) -> None:
        if self._open.get(work.request.id) is work:
            del self._open[work.request.id]

    # The event loop of `async def` methods.

    def _run_loop(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _cancel_tasks(self) -> None:
        """The member has been closed: what still runs is nobody's concern."""
        assert self._loop is not None
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            waiting = asyncio.gather(*self._tasks, return_exceptions=True)
            waiting.add_done_callback(lambda _: self._loop is not None and self._loop.stop())
        else:
            self._loop.stop()


class Remembered:
    """What was said of the last so many names. Any thread."""

    def __init__(self) -> None:
        self._said: OrderedDict[bytes, Any] = OrderedDict()
        self._lock = threading.Lock()

    def first(self, name: bytes, value: Any) -> Any:
        """What was said first of a name: this, if nothing was."""
        with self._lock:
            if len(self._said) >= REMEMBERED:
                self._said.popitem(last=False)
            return self._said.setdefault(name, value)

    def forget(self, name: bytes) -> bool:
        """Whether anything was said of it; no more."""
        if name not in self._said:
            return False
        with self._lock:
            return self._said.pop(name, None) is not None


def complete(job: Job) -> None:
    """A call is over."""
    with contextlib.suppress(FencedError):  # Whoever has the partition now sees it, too.
        job.complete()


def encoded(result: Any) -> bytes:
    """A result as a body.

    Raises:
        Internal: it can't be written as JSON.
    """
    try:
        return serde.encode(result)
    except EncodeError as error:
        raise Internal(f"the result can't be written as JSON: {error}") from error
