"""Start-up, shutdown and background functions of an app, and requests to stop it."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from awoke.declare.signatures import signature_of
from awoke.errors import ConfigError
from awoke.waiting.drive import is_of_owner
from awoke.waiting.raised import report

logger = logging.getLogger(__name__)


class BackgroundFunction(NamedTuple):
    """A function that an app runs beside its routes."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    on_error: Literal["log", "fail", "restart"]
    name: str | None


Kind = TypeVar("Kind")


class Runner(Protocol):
    """The runtime's side of an app that runs. Any thread may call everything here."""

    def steer(self, group: str | None, change: Callable[[Any], bool]) -> bool: ...
    def blocking(self, topic: str, partition: int, group: str | None = None) -> list[int]: ...
    def is_assigned(self, topic: str, partition: int) -> bool: ...
    def threads(self) -> Sequence[tuple[str, str, str]]: ...
    def extension(self, kind: type[Kind]) -> Kind | None:
        """Returns the extension of this class; None where the app has none."""


class LifecycleFunction(NamedTuple):
    """A start-up or shutdown function."""

    function: Callable[[], Any]
    is_async: bool
    name: str


class Shutdown(NamedTuple):
    """A shutdown function and the start-up function that it belongs to."""

    function: LifecycleFunction
    startup: int | None
    """The position of the start-up function; None for a shutdown function that belongs to none."""


class Lifecycle:
    """The start-up and shutdown functions of an app, in order of registration."""

    def __init__(self) -> None:
        self.startups: list[LifecycleFunction] = []
        self.shutdowns: list[Shutdown] = []

    def add_startup(self, function: Callable[[], Any]) -> None:
        """Registers a start-up function.

        Raises:
            ConfigError: the function needs arguments, or is a generator function.
        """
        self.startups.append(lifecycle_function(function, "on_startup"))

    def add_shutdown(self, function: Callable[[], Any]) -> None:
        """Registers a shutdown function. It belongs to the first start-up function before it that has none yet.

        Raises:
            ConfigError: the function needs arguments, or is a generator function.
        """
        paired = sum(each.startup is not None for each in self.shutdowns)
        startup = paired if paired < len(self.startups) else None
        self.shutdowns.append(Shutdown(lifecycle_function(function, "on_shutdown"), startup))

    def shutdowns_after(self, started: int) -> list[LifecycleFunction]:
        """Returns the shutdown functions to run when this number of start-up functions succeeded, in their order."""
        wanted = [each for each in self.shutdowns if each.startup is None or each.startup < started]
        return [each.function for each in reversed(wanted)]

    @property
    def has_async(self) -> bool:
        """True if a function needs an event loop."""
        return any(each.is_async for each in [*self.startups, *(each.function for each in self.shutdowns)])


def lifecycle_function(function: Callable[[], Any], decorator: str) -> LifecycleFunction:
    """Checks a function that takes no arguments and returns once."""
    name = getattr(function, "__qualname__", repr(function))
    call = getattr(function, "__call__", function)  # noqa: B004 - an object may have an async __call__.
    if any(
        check(each) for check in (inspect.isgeneratorfunction, inspect.isasyncgenfunction) for each in (function, call)
    ):
        raise ConfigError(f"@app.{decorator} takes a function that returns; {name} has a yield", decorator)
    try:
        signature_of(function).bind()
    except TypeError as error:
        raise ConfigError(f"@app.{decorator} calls {name} without arguments: {error}", decorator) from None
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
    return LifecycleFunction(function, is_async, name)


class BetweenJobs:
    """Functions that are called before and after each job, hook and remote call, on the thread that runs it."""

    def __init__(self) -> None:
        self._functions: dict[bool, list[Callable[[], Any]]] = {False: [], True: []}
        """Those for `def` handlers, and those for `async def` handlers."""
        self.has_any = False

    def add(self, function: Callable[[], Any]) -> None:
        """Registers a function.

        Raises:
            ConfigError: it needs arguments, or is a generator function.
        """
        self._functions[lifecycle_function(function, "between_jobs").is_async].append(function)
        self.has_any = True

    async def call(self, *, is_async: bool) -> None:
        """Calls the functions for one kind of handlers. Blocks for `def`, and awaits for `async def`."""
        for each in self._functions[is_async]:
            if is_async:
                await each()
            else:
                each()

    async def end(self, *, is_async: bool) -> None:
        """As `call`, after a job has ended: an error is logged, because it cannot change the job any more."""
        try:
            await self.call(is_async=is_async)
        except BaseException as error:
            if is_of_owner(error):
                raise
            report(error, logger, "a function of @app.between_jobs failed after a job")


class StopRequests:
    """Passes a request to stop on to the runners of the app. Any thread may call everything here.

    A request that comes before the app has ever run ends its first start. Otherwise a thread that calls `app.stop()`
    beside the thread that calls `app.run()` could come too early, and its request would be lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []
        self._has_run = False
        self._is_early = False

    def request(self) -> None:
        """Asks all current runners of the app to stop. Does not block."""
        with self._lock:
            listeners = list(self._listeners)
            self._is_early = not self._has_run
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], object]) -> Callable[[], None] | None:
        """Calls the listener for each request from now on; returns the function that ends this.

        Returns None if a request came before the app has ever run: then the app must not start.
        """
        with self._lock:
            self._has_run = True
            if self._is_early:
                self._is_early = False
                return None
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end
