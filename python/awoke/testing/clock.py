"""Virtual time for tests: awoke's clock stands still until the test moves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from awoke._native import TakenClock
from awoke.waiting.clock import monotonic_s

STEPS_MAX = 100_000
"""The most moments that one call moves to: a tick of a millisecond takes them in 100 seconds."""


class VirtualClock:
    """Takes awoke's clock for a `with` block. One at a time in a process, and one thread at a time uses it.

    `at_rest` waits until the apps of the test are at rest, however messages reach them; it is called before each step.
    """

    def __init__(self, *, settle_timeout_s: float = 10.0, at_rest: Callable[[], object] | None = None) -> None:
        self._settle_timeout_s, self._at_rest = settle_timeout_s, at_rest
        self._taken: TakenClock | None = None
        self._began_s = 0.0

    def __enter__(self) -> Self:
        """Stops the clock. Does not block.

        Raises:
            RuntimeError: another virtual clock has it.
        """
        self._taken = TakenClock()
        self._began_s = monotonic_s()
        _current.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the clock back: it goes on from where it stands, at the pace of real time. Does not block."""
        taken, self._taken = self._clock, None
        _current.remove(self)
        taken.release()

    @property
    def now_s(self) -> float:
        """The seconds by which the test has moved the clock."""
        return round(monotonic_s() - self._began_s, 9)  # The clock counts nanoseconds.

    def next_due_s(self) -> float | None:
        """Returns in how many seconds something of awoke's is due next; None if nothing waits for the clock.

        Waits until what runs has set its timers. Blocks.

        Raises:
            TimeoutError: as `advance`.
        """
        self.settle()
        due = earlier(*self._clock.due_in())
        return None if due is None else due / 1e9

    def advance(self, seconds: float, *, jobs_go_on: bool = False) -> None:
        """Moves the clock, from one moment at which something is due to the next. Blocks.

        Before each step it waits until what runs has set its timers: a tick of 10 s is called twice in 25 s. With
        `jobs_go_on`, handlers that run now are not waited for: one that hangs, or waits for the test.

        Raises:
            ValueError: `seconds` is negative. TimeoutError: something still ran after `settle_timeout_s` of real time.
        """
        if seconds < 0:
            raise ValueError(f"seconds is {seconds}: time does not go back")
        going_on = self._clock.running() if jobs_go_on else 0
        left = round(seconds * 1e9)
        for _ in range(STEPS_MAX):
            self.settle(going_on)
            due = earlier(*self._clock.due_in())
            step = left if due is None else min(left, due)
            self._clock.move_by(step)
            left -= step
            if left == 0 and (due is None or due > step):
                self.settle(going_on)
                return
        raise TimeoutError(f"more than {STEPS_MAX} moments came due before the end: advance by less")

    def run_until_idle(self) -> None:
        """Moves the clock from moment to moment, until nothing is left that happens once. Blocks.

        Ticks, the commit interval and waits of background functions happen again and again: they do not count.

        Raises:
            TimeoutError: as `advance`, or something new came due again and again.
        """
        for _ in range(STEPS_MAX):
            self.settle()
            once, recurring = self._clock.due_in()
            if once is None:
                return
            self._clock.move_by(min(once, once if recurring is None else recurring))
        raise TimeoutError(f"more than {STEPS_MAX} moments came due: something sets another timer each time")

    async def aadvance(self, seconds: float, *, jobs_go_on: bool = False) -> None:
        """Moves the clock as `advance`, while the event loop runs on."""
        await asyncio.to_thread(self.advance, seconds, jobs_go_on=jobs_go_on)

    async def arun_until_idle(self) -> None:
        """Moves the clock as `run_until_idle`, while the event loop runs on."""
        await asyncio.to_thread(self.run_until_idle)

    def settle(self, jobs_going_on: int = 0) -> None:
        """Waits until nothing runs that does not wait for the clock itself, but for some jobs. Blocks, in real time.

        Raises:
            TimeoutError: something still runs after `settle_timeout_s`; says what.
        """
        if self._at_rest is not None and not jobs_going_on:
            self._at_rest()
        busy = self._clock.settle(self._settle_timeout_s, jobs_going_on)
        if busy:
            raise TimeoutError(
                f"after {self._settle_timeout_s:g} s of real time the clock still waits for: {'; '.join(busy)}. "
                "Does a handler wait for the test, or for real time? See `jobs_go_on`."
            )

    @property
    def _clock(self) -> TakenClock:
        if self._taken is None:
            raise RuntimeError("the clock is not taken: use it within `with VirtualClock() as clock:`")
        return self._taken


_current: list[VirtualClock] = []
"""The clock that has the time of this process, or none."""


def waits_for_s() -> float | None:
    """Returns in how many seconds of virtual time something is due once; None without a virtual clock, or if nothing
    is. Does not block."""
    due = _current[0]._clock.due_in()[0] if _current else None
    return None if due is None else due / 1e9


def earlier(one: int | None, other: int | None) -> int | None:
    """Returns the smaller of two numbers, of which each may be missing."""
    return min((each for each in (one, other) if each is not None), default=None)
