"""How many results of a stream may be under way: its caller says how many, and then how many more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial

from awoke._native import Work

WINDOW_MAX = 65_536
"""Most results of a stream that may be under way; a caller that allows more gets as many."""


class Window:
    """One thread or task takes; any may add."""

    def __init__(self, credit: int | None) -> None:
        self._credit = min(credit or 0, WINDOW_MAX)
        self.is_named = credit is not None
        """Whether the request says how many."""
        self._lock = threading.Lock()
        self._wake: Callable[[], object] | None = None

    def add(self, credit: int) -> None:
        """The caller takes so many more. Does not block."""
        with self._lock:
            self._credit = min(self._credit + credit, WINDOW_MAX)
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def wake(self) -> None:
        """Whoever waits looks whether it still should. Does not block."""
        self.add(0)

    def take(self, call: Work) -> bool:
        """Wait until one may be sent; False when the caller waits no more. Blocks."""
        while not call.is_cancelled:
            arrived = threading.Event()
            if self._try_take(arrived.set):
                return True
            if not call.is_cancelled:  # Who cancels from here on wakes.
                arrived.wait(call.remaining_s)
        return False

    async def take_async(self, call: Work) -> bool:
        """As `take`, on the running loop."""
        loop = asyncio.get_running_loop()
        while not call.is_cancelled:
            arrived = asyncio.Event()
            if self._try_take(partial(_wake_task, loop, arrived)):
                return True
            try:
                await asyncio.wait_for(arrived.wait(), call.remaining_s)
            except TimeoutError:
                return False
        return False

    def _try_take(self, wake: Callable[[], object]) -> bool:
        with self._lock:
            if self._credit > 0:
                self._credit -= 1
                return True
            self._wake = wake
            return False


def _wake_task(loop: asyncio.AbstractEventLoop, arrived: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # The loop is over, and with it the task.
        loop.call_soon_threadsafe(arrived.set)
