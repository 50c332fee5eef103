"""The end of a caller: it ends the back-off of calls that are about to be made again."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator


class Closing:
    """Tells whether a caller is closed. Any thread, any event loop."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._wakes: set[Callable[[], object]] = set()
        """Wake the tasks that pause."""

    @property
    def is_closed(self) -> bool:
        """True if the caller is closed."""
        return self._event.is_set()

    def close(self) -> None:
        """Closes, and ends all pauses. Does not block."""
        with self._lock:
            self._event.set()
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    def pause(self, delay_s: float) -> Pause:
        """Returns a pause of this length, which ends early when the caller is closed. Does not block."""
        return Pause(self, delay_s)

    def wait(self, delay_s: float) -> bool:
        """Pauses the calling thread; returns whether the caller is closed."""
        return self._event.wait(delay_s)

    async def wait_on_loop(self, delay_s: float) -> bool:
        """Pauses the calling task, without a thread; returns whether the caller is closed."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # The loop has ended, and with it the task.
                loop.call_soon_threadsafe(end)

        timer = loop.call_later(delay_s, end)
        with self._lock:
            self._wakes.add(wake)
        try:
            if not self.is_closed:
                await over
        finally:
            timer.cancel()
            with self._lock:
                self._wakes.discard(wake)
        return self.is_closed


class Pause:
    """A pause, for a flow to wait for; its result is whether the caller is closed."""

    __slots__ = ("_closing", "_delay_s")

    def __init__(self, closing: Closing, delay_s: float) -> None:
        self._closing, self._delay_s = closing, delay_s

    def wait(self) -> bool:
        """Pauses the calling thread; returns whether the caller is closed."""
        return self._closing.wait(self._delay_s)

    def __await__(self) -> Generator[object, object, bool]:
        return self._closing.wait_on_loop(self._delay_s).__await__()
