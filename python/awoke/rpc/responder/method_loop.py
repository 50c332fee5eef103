"""The event loop of a service's `async def` methods: a task for each call, on a thread of its own.

If all methods are `async def`, the loop also receives the calls (`LoopReceiver`). A call that a thread receives changes
to the loop's thread: one wake-up more. Then there is no such thread. A method that blocks the loop delays the calls,
and cancellations, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any

from awoke._native import Admission, IncomingCall, Notifier
from awoke.observe.events import Events
from awoke.observe.loop_watch import LoopWatch
from awoke.waiting.lone_step import is_idle, run_lone_step
from awoke.waiting.own_loop import run_loop

logger = logging.getLogger(__name__)

CALLS_OF_TURN = 16
"""Calls that are received in one turn of the loop."""
AGAIN_S = 0.01
"""After an error, calls are received again after this time."""


class MethodLoop:
    """Runs the calls of `async def` methods. `start` and `close` are called once.

    `on_end` is called with what user code ends the loop with, as a `SystemExit` of a task of its own.
    """

    def __init__(
        self,
        admission: Admission,
        run_call: Callable[[IncomingCall], Coroutine[Any, Any, None]],
        on_end: Callable[[BaseException], object],
        new_context: Callable[[], Context],
        events: Events,
    ) -> None:
        self._admission, self._run_call, self._new_context = admission, run_call, new_context
        self._watch = LoopWatch("awoke-rpc-loop", events)
        self._loop = self._watch.new_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = self._has_ended = False
        self.thread = threading.Thread(target=partial(self._run, on_end), name="awoke-rpc-loop", daemon=True)

    def receive(self, on_call: Callable[[IncomingCall], None]) -> None:
        """Has the loop receive calls, and call this function with each. Does not block."""
        self._loop.call_soon(LoopReceiver(self._admission, self._loop, on_call).start)

    def begin_soon(self, call: IncomingCall) -> None:
        """Begins a call from another thread. Does not block."""
        with contextlib.suppress(RuntimeError):  # The loop has ended, and the member before: it comes again.
            self._loop.call_soon_threadsafe(self.begin, call)

    def begin(self, call: IncomingCall) -> None:
        """Begins a call, on the loop's thread. Does not block."""
        task = self._loop.create_task(self.execute(call), context=self._new_context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def execute(self, call: IncomingCall) -> None:
        """Runs a call, and begins the one that gets its place."""
        # Within the task: a task that is cancelled before it begins would not end its call.
        task = asyncio.current_task()
        assert task is not None
        call.when_cancelled(partial(self._cancel_task, task))
        try:
            await self._run_call(call)
        finally:  # Also if a `GeneratorExit` of another task is thrown in here, which closes what is awaited first.
            following = self._admission.release(call)
            if following is not None and not self._is_closing:
                self.begin(following)

    def close(self) -> None:
        """Cancels the calls that still run, and ends the thread. Does not block.

        The group member has been closed before, so their results change nothing.
        """
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._cancel_tasks)

    def _cancel_task(self, task: asyncio.Task[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended, and with it the task.
            self._loop.call_soon_threadsafe(task.cancel)

    def _run(self, on_end: Callable[[BaseException], object]) -> None:
        self._watch.start()
        try:
            run_loop(self._loop, lambda: self._has_ended, on_end)
        finally:
            self._watch.stop()

    def _cancel_tasks(self) -> None:
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            waiting = asyncio.gather(*self._tasks, return_exceptions=True)
            waiting.add_done_callback(self._stop)
        else:
            self._stop()

    def _stop(self, *_: object) -> None:
        self._has_ended = True
        self._loop.stop()


class LoopReceiver:
    """Receives calls on an event loop. Used on the loop's thread only.

    1. When the notifier is notified, or the time has come to ask again, receive the calls that are there: a few in each
       turn of the loop, so that tasks run in between.
    2. When there are no more, wait for the notifier.
    3. End when the scheduler is closed.
    """

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
