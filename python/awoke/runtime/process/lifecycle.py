"""Runs the start-up and shutdown functions of one runner: in order, and each shutdown function whatever the others
raise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context
from typing import Any, NamedTuple

from awoke.declare.lifecycle import Lifecycle, LifecycleFunction
from awoke.observe.events import Events, ShutdownFailed
from awoke.runtime.watch.stacks import Unfinished, stack_of, stack_of_coroutine
from awoke.waiting.drive import within

logger = logging.getLogger(__name__)

CallAsync = Callable[[Callable[[], Any]], "Future[Any]"]
"""Calls an async function on the runtime's event loop."""


class Called(NamedTuple):
    """A function that was called and has not returned."""

    what: str
    thread: threading.Thread
    """The thread that has called it, and waits for it."""
    flow: Coroutine[Any, Any, None] | None
    """Its call, if it is `async def`."""


class LifecycleRun:
    """The start-up and shutdown functions of one run of an app. They run in one context, which each job inherits."""

    def __init__(self, lifecycle: Lifecycle, events: Events, call_async: CallAsync, context: Context) -> None:
        self._lifecycle, self._events, self._call_async, self._context = lifecycle, events, call_async, context
        self._closers: list[LifecycleFunction] = []
        self._called: Called | None = None
        self._started: int | None = None
        """The number of start-up functions that succeeded; None before the first was called, and after the shutdown."""

    def start_up(self) -> None:
        """Calls the start-up functions in order of registration. Blocks until the last one has returned.

        Raises what one of them raises; those after it are not called.
        """
        self._started = 0
        for each in list(self._lifecycle.startups):
            self._call(each, "start-up function")
            self._started += 1

    def also(self, start: Callable[[], object], close: Callable[[], object], name: str) -> None:
        """Calls a function after the start-up functions, and has another one called before the shutdown functions.

        Raises what the first raises; the second is called all the same.
        """
        self._closers.append(LifecycleFunction(close, False, name))
        self._context.run(start)

    def shut_down(self, deadline_s: float) -> list[str]:
        """Calls the shutdown functions in reverse order; returns the thread that still runs at the deadline.

        Does nothing if `start_up` was not called. The functions run on a thread of their own: one that hangs must not
        hold up the end of the process.
        """
        started, self._started = self._started, None
        functions = [] if started is None else [*self._closers, *self._lifecycle.shutdowns_after(started)]
        if not functions:
            return []
        thread = threading.Thread(target=self._shut_down, args=(functions,), name="awoke-shutdown", daemon=True)
        thread.start()
        thread.join(max(0.0, deadline_s - time.monotonic()))
        if not thread.is_alive():
            return []
        for what, stack in self.unfinished():
            logger.error("%s is still running, at:\n%s", what, stack)
        return [thread.name]

    def unfinished(self) -> list[Unfinished]:
        """Returns the start-up or shutdown function that was called and has not returned. Does not block."""
        called = self._called
        if called is None:
            return []
        stack = stack_of(called.thread) if called.flow is None else stack_of_coroutine(called.flow)
        return [Unfinished(called.what, stack)]

    def _shut_down(self, functions: list[LifecycleFunction]) -> None:
        for each in functions:
            try:
                self._call(each, "shutdown function")
            except BaseException as error:  # Also SystemExit: the other functions must run.
                self._events.emit(ShutdownFailed(function=each.name, error=error))

    def _call(self, each: LifecycleFunction, kind: str) -> None:
        flow = self._run_async(each.function) if each.is_async else None
        self._called = Called(f"the {kind} {each.name}", threading.current_thread(), flow)
        if flow is not None:
            call = self._call_async(lambda: flow)
            try:
                call.result()
            except BaseException:
                call.cancel()  # A signal has interrupted the wait, and not the call, which may go on.
                raise
            return
        try:
            self._context.run(each.function)
        finally:
            self._called = None

    async def _run_async(self, function: Callable[[], Any]) -> None:
        called = self._called
        try:
            await within(self._context, self._context.run(function))
        finally:
            if self._called is called:
                self._called = None


async def until(done: Future[None]) -> None:
    """Waits for a future that has other waiters: cancelling this wait, or closing its loop, does not cancel the
    future."""
    here = asyncio.get_running_loop()
    is_over = asyncio.Event()

    def tell(_: Future[None]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop was closed: the waiting task has gone.
            here.call_soon_threadsafe(is_over.set)

    done.add_done_callback(tell)
    await is_over.wait()
