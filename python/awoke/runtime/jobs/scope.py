"""Background threads and tasks of a consumer or an app, stopped and joined with their owner.

A background thread:
1. run the function;
2. if it raised, emit an event, then end, fail the owner, or run it again after a back-off (a wait on the stop token);
3. end when the function returned or the token was set.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from awoke._native import Signal
from awoke.declare.handlers import check_ran
from awoke.declare.signatures import signature_of
from awoke.errors import ClosedError, end_apps, end_in
from awoke.observe.events import BackgroundFailure, Events
from awoke.observe.ledger import Ledger, place_of_caller
from awoke.waiting.backoff import Backoff
from awoke.waiting.clock import wait
from awoke.waiting.drive import drive, elsewhere, is_in_event_loop, until

logger = logging.getLogger(__name__)

OnError = Literal["log", "fail", "restart"]
"""The effect of an exception: `log` ends the function, `fail` fails its owner, `restart` runs it again."""

BACKOFF = Backoff(0.1, 30.0)
"""Delay before the first restart, doubled before each further one, and its limit."""


class StopToken:
    """Tells a background function to end. Any thread may wait for it."""

    def __init__(self) -> None:
        self._signal = Signal()
        self._threads: set[int] = set()
        """The threads of the owner, whose waits are followed by others or by their end."""

    def is_set(self) -> bool:
        """Returns whether the function is to end. Does not block."""
        return self._signal.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the function is to end, or the time is up; returns whether it is to end. Blocks."""
        return self._signal.wait(timeout_s, recurs=True, is_tracked=threading.get_ident() in self._threads)

    def set(self) -> None:
        """Tells the function to end. Does not block."""
        self._signal.set()

    def pause(self, delay_s: float) -> bool:
        """Waits as `wait`, once: a back-off. Blocks."""
        return self._signal.wait(delay_s, is_tracked=threading.get_ident() in self._threads)

    async def pause_on_loop(self, delay_s: float) -> bool:
        """Waits as `pause`, on an event loop."""
        return await wait(self._signal, delay_s)

    async def wait_on_loop(self) -> None:
        """Waits until the function is to end, on an event loop."""
        await wait(self._signal, None)

    @contextlib.contextmanager
    def thread(self) -> Iterator[None]:
        """Marks the calling thread as one of the owner's, for the time of the block."""
        self._threads.add(threading.get_ident())
        try:
            yield
        finally:
            self._threads.discard(threading.get_ident())
            self._signal.leave()


class Scope:
    """The background threads and tasks of one owner. Closing it stops and joins them; nothing starts afterwards."""

    def __init__(self, owner: str, generation: int, events: Events, ledger: Ledger) -> None:
        self.owner = owner
        self.stopping = StopToken()
        self.failure: BaseException | None = None
        """The error of a background function with the policy `fail`."""
        self._generation = generation
        self._events = events
        self._ledger = ledger
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._on_failure: Callable[[BaseException], object] = lambda error: None

    def on_failure(self, call: Callable[[BaseException], object]) -> None:
        """Has `call` called when a background function fails its owner."""
        self._on_failure = call

    def background(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], on_error: OnError, name: str | None
    ) -> None:
        """Starts a thread, or for a coroutine function a task of the running loop, that belongs to this scope.

        Without a running loop, the thread runs a loop for a coroutine function.

        Raises:
            ClosedError: the owner has ended.
        """
        name = name or str(getattr(function, "__name__", type(function).__name__))
        more = {"stop": self.stopping} if takes_stop(function) else {}
        if inspect.iscoroutinefunction(function) and not is_in_event_loop():
            function = partial(self._run_loop, function)
        with self._lock:
            if self._is_closed:
                raise ClosedError(f"{self.owner} has gone: it starts nothing in the background any more")
            if inspect.iscoroutinefunction(function):
                task = asyncio.get_running_loop().create_task(
                    self._serve(function, arguments, more, on_error, name), name=f"{self.owner}-{name}"
                )
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            thread = threading.Thread(
                target=lambda: self._run(function, arguments, more, on_error, name),
                name=f"{self.owner}-{name}",
                daemon=True,
            )
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
            self._ledger.write_down(thread, self.owner, self._generation, place_of_caller())
            thread.start()

    def _run_loop(self, function: Callable[..., Any], *arguments: Any, **more: Any) -> None:
        """Runs a coroutine function on an event loop of its own, until it ends or the owner does. Blocks."""

        async def run() -> None:
            task = asyncio.ensure_future(function(*arguments, **more))
            stopping = asyncio.ensure_future(self.stopping.wait_on_loop())
            await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if task.done():
                task.result()
            task.cancel()  # It is awaited by the runner's end.

        asyncio.run(run())

    def _run(self, *served: Any) -> None:
        with self.stopping.thread():
            drive(self._serve(*served))

    async def _serve(
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
                result = function(*arguments, **more)
                if inspect.iscoroutinefunction(function):
                    await result
                elif result is not None:
                    check_ran(result, name)
                return
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and self.stopping.is_set():
                    raise
                if (end := end_in(error)) is not None:
                    end_apps(end)
                    return
                failures += 1
                delay_s = self._failed(error, on_error, name, failures)
            if delay_s is None or await until(Pause(self.stopping, delay_s)):
                return

    def _failed(self, error: BaseException, on_error: OnError, name: str, failures: int) -> float | None:
        """Emits the failure; returns the delay before the function runs again, or None."""
        will_restart = on_error == "restart" and not self.stopping.is_set()
        delay_s = BACKOFF.delay_s(failures)
        self._events.emit(
            BackgroundFailure(
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

    def stop(self) -> None:
        """Sets the stop token, and cancels the tasks. Does not block. Tasks belong to the calling thread's event
        loop."""
        with self._lock:
            self._is_closed = True
            tasks = list(self._tasks)
        self.stopping.set()
        for task in tasks:
            task.cancel()

    async def close(self, timeout_s: float) -> list[str]:
        """Stops and joins the threads and tasks; returns the names of those that did not end within `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        self.stop()
        with self._lock:
            threads, tasks = self._threads, list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        late = [task.get_name() for task in tasks if not task.done()]
        if any(thread.is_alive() for thread in threads):
            await elsewhere(join_all, threads, deadline_s)
        return late + [thread.name for thread in threads if thread.is_alive()]


def join_all(threads: Iterable[threading.Thread], deadline_s: float) -> None:
    """Joins threads, but for the calling one, until a deadline of the monotonic clock. Blocks."""
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(0.0, deadline_s - time.monotonic()))


class Pause(NamedTuple):
    """The back-off of a background function; for `until`. Its result is whether to end."""

    stopping: StopToken
    delay_s: float

    def done(self) -> bool:
        """Tells whether the function is to end."""
        return self.stopping.is_set()

    def wait(self) -> bool:
        """Blocks until the back-off is over, or the token is set."""
        return self.stopping.pause(self.delay_s)

    def __await__(self) -> Generator[Any, Any, bool]:
        return self.stopping.pause_on_loop(self.delay_s).__await__()


def takes_stop(function: Callable[..., Any]) -> bool:
    """Tells whether a function has a parameter `stop`, for the token."""
    try:
        return "stop" in signature_of(function).parameters
    except (TypeError, ValueError):
        return False
