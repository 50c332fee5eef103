"""Answers the calls of a service, in one process of its app.

A call goes: the engine's intake (who calls, may they, is there time; now, or in line) → `_carry_out`, or `Refusals` where it
is not carried out → `Answers` → the job ends when the reply is acknowledged, or with the transaction that it is part of.

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
from collections.abc import AsyncGenerator, Generator
from functools import partial
from typing import Any

from awoke import _native, serde
from awoke._native import Work
from awoke.concurrency import Lanes
from awoke.errors import AwokeError
from awoke.events import Events
from awoke.rpc import protocol
from awoke.rpc.answers import Answers, encoded
from awoke.rpc.context import current
from awoke.rpc.errors import DeadlineExceeded, Unavailable, streaming_error
from awoke.rpc.host import Host
from awoke.rpc.methods import Rpc
from awoke.rpc.protocol import Topics
from awoke.rpc.refusals import Refusals
from awoke.rpc.reply_topics import ReplyTopics
from awoke.rpc.window import Window
from awoke.settings import client_properties

logger = logging.getLogger(__name__)

IN_FLIGHT = 10_000
"""Calls of one partition that are taken in and not done."""

TRAIL = 100_000

COMMIT_TIMEOUT_S = 10.0

LOOK_AGAIN_S = 0.2
"""A call whose reply partition is being looked up is read again after so long."""

PATIENCE_S = 0.01
"""So long acknowledgements of replies may lie: nobody waits for them, and many cost no more than one."""


class Responder:
    """Answers the calls of a service. `start` and `close` once; the rest is its threads'."""

    def __init__(self, host: Host, rpc: Rpc, events: Events, box: _native.EventBox) -> None:
        rpc.prepare()
        self._host, self._rpc = host, rpc
        self._options = options = rpc.settings
        self.topics = Topics.of(rpc.service)
        self.scheduler = _native.Scheduler()
        self.route = self._make_route()
        properties = client_properties(host.settings, **{"linger.ms": "0", **host.settings.kafka})
        self._producer = _native.Producer(
            properties, serde.encode, host.settings.produce_timeout_s, None, box, PATIENCE_S
        )
        self._reply_topics = ReplyTopics(host.settings, {self.topics.replies, *options.reply_topics})
        self._intake = _native.Intake(
            self.scheduler, options, self.topics.calls, self._reply_topics.look(), list(rpc.methods.values()), box
        )
        self._answers = Answers(host, rpc, events, self._producer, self._intake)
        self._refusals = Refusals(host, rpc, events, self._answers)
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
        self._reply_topics.close(deadline_s)
        self._producer.close(max(1.0, deadline_s - time.monotonic()))
        return [thread for thread in started if thread.is_alive()]

    def threads(self) -> list[threading.Thread]:
        """Returns the threads that run methods. Does not block."""
        return list(self._threads)

    def counts(self) -> dict[str, int]:
        """How many calls run, wait, and were passed over because nobody wanted them any more. Does not block."""
        running, waiting = self._intake.counts()
        return {"running": running, "waiting": waiting, "expired": self.route.expired}

    # A call comes.

    def _run(self) -> None:
        while True:
            try:
                work = self._intake.next()
            except Exception:
                logger.exception("a call could not be received")
                continue
            if work is None:
                return
            verdict = work.verdict
            if verdict is not None:
                self._turn_away(work, verdict)
                work = None  # A call that is over must not wait for the next one to be freed.
            while work is not None:
                work = self._carry_out(work)

    def _turn_away(self, work: Work, verdict: str) -> None:
        try:
            if verdict == "reply_partition" and self._reply_topics.is_looking_again(self._intake.set_reply_topics):
                work.retry(LOOK_AGAIN_S)  # It may have been added since.
            else:
                self._refusals.tell(work, verdict)
        except Exception:
            logger.exception("a call could not be turned away (%s); it is looked at again", verdict)
            self._answers.abandon(work, 1.0)

    # It is carried out.

    def _carry_out(self, work: Work) -> Work | None:
        """Carry out a call whose turn it is; the next one, whose turn comes with its end. Blocks as user code does."""
        loop = self._loop
        if loop is not None and work.method.is_async:
            work.step_aside(True)
            loop.call_soon_threadsafe(self._begin_task, work)
            return None
        try:
            if self._begin(work):
                result = self._call(work)
                self._answers.give_result(work, result)
        except BaseException as error:
            self._answers.give_error(work, error)
        return self._intake.leave(work)

    def _call(self, work: Work) -> Any:
        token, tracer = current.set(work), self._host.tracer
        work.start()
        try:
            if tracer is None:
                return self._run_method(work)
            with tracer.message(work.message, work.name):
                return self._run_method(work)
        finally:
            work.stop()
            current.reset(token)

    def _run_method(self, work: Work) -> Any:
        method = work.method
        if method.is_stream:
            check_wants_stream(work)
        result = method.function(**method.arguments(work.body))
        if method.is_stream:
            self._send_all(work, result)
        return result

    def _begin_task(self, work: Work) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._carry_out_async(work))
        # A call that was cancelled already sees so when it begins: its task must begin, or nobody ends it.
        work.when_cancelled(partial(self._cancel_task, task))
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
                self._answers.give_result(work, result)
        except asyncio.CancelledError:
            self._answers.give_error(work, Unavailable("the responder has stopped"), is_shared=False)
        except TimeoutError as error:
            is_late = work.remaining_s <= 0
            self._answers.give_error(work, DeadlineExceeded(f"{work.name} took too long") if is_late else error)
        except BaseException as error:
            self._answers.give_error(work, error)
        following = self._intake.leave(work)
        if following is not None and not self._is_closing:
            self._begin_task(following)

    async def _call_async(self, work: Work) -> Any:
        token, tracer = current.set(work), self._host.tracer
        work.start()
        try:
            if tracer is None:
                return await self._run_method_async(work)
            with tracer.message(work.message, work.name):
                return await self._run_method_async(work)
        finally:
            work.stop()
            current.reset(token)

    async def _run_method_async(self, work: Work) -> Any:
        async with asyncio.timeout(work.remaining_s):
            method = work.method
            if method.is_stream:
                check_wants_stream(work)
            result = method.function(**method.arguments(work.body))
            if not method.is_stream:
                return await result
            await self._send_all_async(work, result)
            return None

    def _begin(self, work: Work) -> bool:
        """Whether a call is still to be carried out, now that its turn has come. Blocks to commit its offset first."""
        verdict = work.begin()
        if verdict == "fenced":
            self._answers.abandon(work)
            return False
        if verdict is not None:
            self._refusals.tell(work, verdict)
            return False
        mode = self._options.mode
        if mode == "at_most_once":
            self._commit(work)
        elif mode == "exactly_once":
            assert self._host.transactions is not None
            work.contribution = self._host.transactions.contribution()
        return True

    def _commit(self, work: Work) -> None:
        """From here on the call is not carried out again, whatever happens."""
        job = work.take_job()
        assert job is not None
        assert self._host.member is not None
        try:
            job.complete()
            self._host.member.commit().wait(COMMIT_TIMEOUT_S)
        except AwokeError as error:
            raise Unavailable(f"the call was not carried out: its offset could not be committed: {error}") from None

    def _send_all(self, work: Work, results: Generator[Any, None, None]) -> None:
        """The results of a generator, as fast as its caller takes them. However it ends, the generator is closed."""
        with contextlib.closing(results):
            for result in results:
                window = window_of(work)
                if work.is_cancelled or (window is not None and not window.take(work)):
                    return
                self._answers.send(work, protocol.ITEM, encoded(result, work.name))

    async def _send_all_async(self, work: Work, results: AsyncGenerator[Any, None]) -> None:
        """As `_send_all`."""
        async with contextlib.aclosing(results):
            async for result in results:
                window = window_of(work)
                if work.is_cancelled or (window is not None and not await window.take_async(work)):
                    return
                self._answers.send(work, protocol.ITEM, encoded(result, work.name))

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


def window_of(work: Work) -> Window | None:
    """Returns the window of a stream; None where no result is sent before the last one is there, or none at all."""
    window: Window = work.window
    return window if work.contribution is None and work.reply_to is not None else None


def check_wants_stream(work: Work) -> None:
    """Refuses a call that wants one result of a method that returns a stream, before the method is executed.

    Raises:
        InvalidArgument: the request says not how many results may be under way.
    """
    if work.reply_to is not None and not work.window.is_named:
        raise streaming_error(work.name)
