"""The end of a caller: it ends the back-off of calls that are about to be made again."""

from __future__ import annotations

from collections.abc import Generator

from awoke._native import Signal
from awoke.waiting.clock import wait


class Closing:
    """Tells whether a caller is closed. Any thread, any event loop."""

    def __init__(self) -> None:
        self._signal = Signal()

    @property
    def is_closed(self) -> bool:
        """True if the caller is closed."""
        return self._signal.is_set()

    def close(self) -> None:
        """Closes, and ends all pauses. Does not block."""
        self._signal.set()

    def pause(self, delay_s: float) -> Pause:
        """Returns a pause of this length, which ends early when the caller is closed. Does not block."""
        return Pause(self, delay_s)

    def wait(self, delay_s: float) -> bool:
        """Pauses the calling thread; returns whether the caller is closed."""
        return self._signal.wait(delay_s)

    async def wait_on_loop(self, delay_s: float) -> bool:
        """Pauses the calling task, without a thread; returns whether the caller is closed."""
        return await wait(self._signal, delay_s)


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
