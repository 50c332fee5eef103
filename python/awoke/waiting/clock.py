"""awoke's clock: the time that back-offs, delays, deadlines and schedules are measured by.

It is the monotonic clock, unless a test has taken it (`awoke.testing.VirtualClock`): then it stands still until the
test moves it. Time-outs of brokers, threads and processes stay on `time.monotonic()`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from awoke._native import Signal, SignalWait, clock_is_virtual, clock_ns, wall_ns
from awoke.waiting.handles import IN_JOB, LoopMailbox, mailbox_of, resolve_once

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def monotonic_s() -> float:
    """Returns the clock's time in seconds: `time.monotonic()`, unless a test moved it."""
    return clock_ns() / 1e9


def wall_ms() -> int:
    """Returns the time since 1970 in milliseconds, which moves with the clock while a test has it."""
    return wall_ns() // 1_000_000


def now() -> datetime:
    """Returns the current time, in UTC. In a test that has taken the clock it is virtual time, which the test moves.

    Use it in handlers in place of `datetime.now`, where a test is to decide the time. Does not block.
    """
    return EPOCH + timedelta(microseconds=wall_ns() // 1_000)


async def wait(signal: Signal, timeout_s: float | None) -> bool:
    """Waits until the signal is set, at most `timeout_s` by the clock; returns whether it is set.

    A test that has the clock moves it on when the calling task has run to its next wait, or to its end.
    """
    loop = asyncio.get_running_loop()
    waiting = signal.begin_wait(timeout_s, is_of_job=IN_JOB.get())
    mailbox = mailbox_of(loop)
    try:
        while not waiting.done():
            over: asyncio.Future[None] = loop.create_future()
            alarm = Alarm(waiting, mailbox, partial(resolve_once, over))
            try:
                await over
            finally:
                alarm.disarm()
    finally:
        if loop.is_closed():  # A task that is left behind ends with its coroutine.
            waiting.end()
        else:
            loop.call_soon(waiting.end)  # The loop calls it after this turn of the task.
    return waiting.result()


def timeout(seconds: float) -> contextlib.AbstractAsyncContextManager[object]:
    """Cancels the block after `seconds` by the clock, as `asyncio.timeout` does.

    Raises:
        TimeoutError: the time was over.
    """
    return _virtual_timeout(seconds) if clock_is_virtual() else asyncio.timeout(seconds)


@contextlib.asynccontextmanager
async def _virtual_timeout(seconds: float) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    waiting = Signal().begin_wait(seconds, is_of_job=True)
    async with asyncio.timeout(None) as limit:

        def cancel() -> None:
            waiting.end()  # Its job still runs.
            limit.reschedule(loop.time())

        alarm = Alarm(waiting, mailbox_of(loop), cancel)
        try:
            yield
        finally:
            alarm.disarm()
            waiting.end()


class Alarm:
    """Calls a function on the running loop when a wait is over, which the function ends. Used by the loop's thread."""

    def __init__(self, waiting: SignalWait, mailbox: LoopMailbox, call: Callable[[], Any]) -> None:
        self._waiting, self._mailbox, self._call = waiting, mailbox, call
        self._token: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def disarm(self) -> None:
        """Calls nothing any more."""
        if self._token is not None:
            self._mailbox.forget(self._token)
        if self._timer is not None:
            self._timer.cancel()
        self._token = self._timer = None

    def _look(self) -> None:
        self.disarm()
        if self._waiting.done():
            self._call()
            return
        self._token = self._mailbox.expect(self._look)
        left_s = self._waiting.remaining_s()
        if left_s is not None:
            self._timer = asyncio.get_running_loop().call_later(left_s, self._look)
        if not self._waiting.notify(self._mailbox.native, self._token):
            self._timer = asyncio.get_running_loop().call_later(0, self._look)
