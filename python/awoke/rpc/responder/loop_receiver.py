"""Receives the calls of a service whose methods are all `async def`, on the event loop that executes them.

A call that a thread receives changes to the loop's thread: one wake-up more. Here there is no such thread.

1. When the notifier is notified, or the time has come to ask again, receive the calls that are there: a few in each
   turn of the loop, so that tasks run in between.
2. When there are no more, wait for the notifier.
3. End when the scheduler is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from awoke._native import Admission, IncomingCall, Notifier
from awoke.waiting.lone_step import is_idle, run_lone_step

logger = logging.getLogger(__name__)

CALLS_OF_TURN = 16
"""Calls that are received in one turn of the loop."""
AGAIN_S = 0.01
"""After an error, calls are received again after this time."""


class LoopReceiver:
    """Receives calls on an event loop. Used on the loop's thread only."""

    def __init__(
        self, admission: Admission, loop: asyncio.AbstractEventLoop, begin: Callable[[IncomingCall], None]
    ) -> None:
        self._admission, self._loop, self._begin = admission, loop, begin
        self._notifier = Notifier()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Receives calls from now on. Does not block."""
        self._loop.add_reader(self._notifier.fileno(), self._on_notified)
        self._receive()

    def _on_notified(self) -> None:
        self._notifier.clear()
        was_idle = is_idle(self._loop)
        self._receive()
        if was_idle:
            run_lone_step(self._loop)

    def _receive(self) -> None:
        self._set_timer(None)
        for _ in range(CALLS_OF_TURN):
            try:
                call, seconds, is_closed = self._admission.next_or_notify(self._notifier)
                if call is not None:
                    self._begin(call)
                    continue
            except Exception:
                logger.exception("a call could not be received")
                self._set_timer(AGAIN_S)
                return
            if is_closed:
                self._loop.remove_reader(self._notifier.fileno())
            else:
                self._set_timer(seconds)
            return
        self._loop.call_soon(self._receive)

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._receive)
