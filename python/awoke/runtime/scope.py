"""What a consumer or an app owns beside its hooks: background threads and tasks, stopped and joined with their owner.

A background thread:
1. run the function;
2. when it raised: say so, then end, fail the owner, or run it again after a back-off (a wait on the stop token);
3. end when the function returned or the token was set.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from awoke.backoff import Backoff
from awoke.errors import ClosedError
from awoke.events import BackgroundFailed, Events
from awoke.handlers import check_ran
from awoke.runtime.ledger import Ledger, place_of_caller

logger = logging.getLogger(__name__)

OnError = Literal["log", "fail", "restart"]
"""What an exception of a background function does: `log` ends it, `fail` fails its owner, `restart` runs it again."""

BACKOFF = Backoff(0.1, 30.0)
"""Delay before the first restart, doubled before each further one, and its limit."""


class StopToken:
    """Says that it is time to end. Any thread may wait for it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def is_set(self) -> bool:
        """Whether it is time to end. Does not block."""
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is time to end, or the time is up; whether it is. Blocks."""
        return self._event.wait(timeout_s)

    def set(self) -> None:
        """Say that it is time to end."""
        self._event.set()


class Scope:
    """The background threads and tasks of one owner. Closing it stops and joins them; nothing starts afterwards."""

    def __init__(self, owner: str, generation: int, events: Events, ledger: Ledger) -> None:
        self.owner = owner
        self.stopping = StopToken()
        self.failure: BaseException | None = None
        """What a background function raised whose policy is to fail its owner."""
        self._generation = generation
        self._events = events
        self._ledger = ledger
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._on_failure: Callable[[BaseException], object] = lambda error: None

    def on_failure(self, call: Callable[[BaseException], object]) -> None:
        """Call this when a background function fails its owner."""
        self._on_failure = call

    def background(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], on_error: OnError, name: str | None
    ) -> None:
        """Start a thread, or for a coroutine function a task of the running loop, that belongs to this scope.

        Raises:
            ClosedError: the owner has gone.
        """
        name = name or str(getattr(function, "__name__", type(function).__name__))
        more = {"stop": self.stopping} if takes_stop(function) else {}
        with self._lock:
            if self._is_closed:
                raise ClosedError(f"{self.owner} has gone: it starts nothing in the background any more")
            if inspect.iscoroutinefunction(function):
                task = asyncio.get_running_loop().create_task(
                    self._serve_async(function, arguments, more, on_error, name), name=f"{self.owner}-{name}"
                )
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            thread = threading.Thread(
                target=self._serve,
                args=(function, arguments, more, on_error, name),
                name=f"{self.owner}-{name}",
                daemon=True,
            )
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            self._ledger.write_down(thread, self.owner, self._generation, place_of_caller())
            thread.start()

    def _serve(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        more: dict[str, Any],
        on_error: OnError,
        name: str,
    ) -> None:
        failures = 0
        while True:
            try:
                if (result := function(*arguments, **more)) is not None:
                    check_ran(result, name)
                return
            except Exception as error:
                failures += 1
                delay_s = self._failed(error, on_error, name, failures)
            if delay_s is None or self.stopping.wait(delay_s):
                return

    async def _serve_async(
        self,
        function: Callable[..., Coroutine[Any, Any, Any]],
        arguments: tuple[Any, ...],
        more: dict[str, Any],
        on_error: OnError,
        name: str,
    ) -> None:
        failures = 0
        while True:
            try:
                await function(*arguments, **more)
                return
            except Exception as error:
                failures += 1
                delay_s = self._failed(error, on_error, name, failures)
            if delay_s is None or self.stopping.is_set():
                return
            await _after(delay_s)

    def _failed(self, error: Exception, on_error: OnError, name: str, failures: int) -> float | None:
        """Say what failed; the delay before it runs again, or None."""
        will_restart = on_error == "restart" and not self.stopping.is_set()
        delay_s = BACKOFF.delay_s(failures)
        self._events.emit(
            BackgroundFailed(
                owner=self.owner,
                function=name,
                failures=failures,
                restart_in_s=round(delay_s, 3) if will_restart else None,
                error=error,
            )
        )
        if on_error == "fail":
            self.failure = error
            self._on_failure(error)
        return delay_s if will_restart else None

    def close(self, timeout_s: float) -> list[str]:
        """Stop and join the threads; the names of those that did not end in time. Blocks up to `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        with self._lock:
            self._is_closed = True
            threads = self._threads
        self.stopping.set()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline_s - time.monotonic()))
        return [thread.name for thread in threads if thread.is_alive()]

    async def close_async(self, timeout_s: float) -> list[str]:
        """As `close`, for an owner on the event loop: its tasks are cancelled, its threads joined beside the loop."""
        deadline_s = time.monotonic() + timeout_s
        with self._lock:
            self._is_closed = True
            threads, tasks = self._threads, list(self._tasks)
        self.stopping.set()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        late = [task.get_name() for task in tasks if not task.done()]
        if any(thread.is_alive() for thread in threads):
            left_s = max(0.0, deadline_s - time.monotonic())
            late += await asyncio.get_running_loop().run_in_executor(None, self.close, left_s)
        return late


async def _after(delay_s: float) -> None:
    """Wait on the loop's own timer."""
    moment = asyncio.get_running_loop().create_future()
    handle = asyncio.get_running_loop().call_later(delay_s, moment.set_result, None)
    try:
        await moment
    finally:
        handle.cancel()


def takes_stop(function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `stop`, for the token."""
    try:
        return "stop" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
