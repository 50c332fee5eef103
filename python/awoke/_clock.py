"""awoke's clock: the time that back-offs, delays, deadlines and schedules are measured by.

It is the monotonic clock, unless a test has taken it (`awoke.testing.VirtualClock`): then it stands still until the
test moves it. Time-outs of brokers, threads and processes stay on `time.monotonic()`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from awoke._native import Signal, SignalWait, clock_is_virtual, clock_ns, wall_ns
from awoke._waiting import IN_JOB, LoopMailbox, mailbox_of, resolve_once


def monotonic_s() -> float:
    """Returns the clock's time in seconds: `time.monotonic()`, unless a test moved it."""
    return clock_ns() / 1e9


def wall_ms() -> int:
    """Returns the time since 1970 in milliseconds, which moves with the clock while a test has it."""
    return wall_ns() // 1_000_000


async def wait(signal: Signal, timeout_s: float | None) -> bool:
    """Waits until the signal is set, at most `timeout_s` by the clock; returns whether it is set."""
    waiting = signal.begin_wait(timeout_s, is_of_job=IN_JOB.get())
    mailbox = mailbox_of(asyncio.get_running_loop())
    while not waiting.done():
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = Alarm(waiting, mailbox, partial(resolve_once, over))
        try:
            await over
        finally:
            alarm.cancel()
    return waiting.result()


@contextlib.asynccontextmanager
async def timeout(seconds: float) -> AsyncIterator[None]:
    """Cancels the block after `seconds` by the clock, as `asyncio.timeout` does.

    Raises:
        TimeoutError: the time was over.
    """
    if not clock_is_virtual():
        async with asyncio.timeout(seconds):
            yield
        return
    loop = asyncio.get_running_loop()
    waiting = Signal().begin_wait(seconds, is_of_job=True)
    async with asyncio.timeout(None) as limit:
        alarm = Alarm(waiting, mailbox_of(loop), lambda: limit.reschedule(loop.time()))
        try:
            yield
        finally:
            alarm.cancel()


class Alarm:
    """Calls a function on the running loop when a wait is over. Used by the loop's thread only."""

    def __init__(self, waiting: SignalWait, mailbox: LoopMailbox, call: Callable[[], Any]) -> None:
        self._waiting, self._mailbox, self._call = waiting, mailbox, call
        self._token: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def cancel(self) -> None:
        """Ends the wait, and calls nothing any more."""
        self._waiting.end()
        self._disarm()

    def _disarm(self) -> None:
        if self._token is not None:
            self._mailbox.forget(self._token)
        if self._timer is not None:
            self._timer.cancel()
        self._token = self._timer = None

    def _look(self) -> None:
        self._disarm()
        if self._waiting.done():
            self._waiting.end()
            self._call()
            return
        self._token = self._mailbox.expect(self._look)
        left_s = self._waiting.remaining_s()
        if left_s is not None:
            self._timer = asyncio.get_running_loop().call_later(left_s, self._look)
        if not self._waiting.notify(self._mailbox.native, self._token):
            self._timer = asyncio.get_running_loop().call_later(0, self._look)
