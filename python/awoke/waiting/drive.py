"""Runs flows: coroutines that wait for the engine, written once for blocking callers and for event loops.

A flow waits with `until` and `elsewhere` only, and takes locks with `FlowLock`. There are four ways to run it:

- `drive` on any thread: it blocks, with the GIL released, until the flow has ended;
- `await` on an event loop, which runs the flow as it is;
- `run_now` on any thread: the flow must wait for nothing;
- `drive_later` on any thread: it does not block, and awoke's callback thread runs the rest of the flow.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import types
from asyncio.events import _get_running_loop
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from awoke.errors import HandlerDidNotRun
from awoke.waiting.handles import IN_JOB, Pending, call_back, resolve

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
ResultOut = TypeVar("ResultOut", covariant=True)


class Waitable(Protocol[ResultOut]):
    """A result that comes later, for a flow to wait for."""

    def wait(self) -> ResultOut:
        """Waits for the result on the calling thread, with the GIL released, and returns it."""

    def __await__(self) -> Generator[Any, Any, ResultOut]: ...


class Handle(Pending[ResultOut], Protocol[ResultOut]):
    """A result of the engine's that a thread can wait for."""

    def wait(self) -> Any: ...


class ResultOf(Generic[Result]):
    """The result of one of the engine's handles, for a flow to wait for."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle[Result]) -> None:
        self._handle = handle

    def wait(self) -> Result:
        """Waits for the result on the calling thread and returns it."""
        self._handle.wait()
        return self._handle.result()

    def __await__(self) -> Generator[Any, Any, Result]:
        return resolve(self._handle).__await__()


class _Thread(threading.local):
    """The state of the calling thread."""

    loop: object = "none"
    """The running event loop, or None, of the place where `drive` was called; a text outside of `drive`."""


_thread = _Thread()


def is_driven() -> bool:
    """Tells whether the calling flow is run by `drive`, and not by an event loop.

    A method that `drive` runs may run an event loop of its own: the flows in there are the loop's.
    """
    return _thread.loop is _get_running_loop()


def is_in_event_loop() -> bool:
    """Tells whether the calling thread runs an event loop now."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def is_of_owner(error: BaseException) -> bool:
    """Tells whether the calling flow ends because the owner of its task says so, and not because user code has raised.

    The tasks of jobs are awoke's, which cancels none: there, user code has cancelled something. A test may run a route
    in a task of its own, and cancel that. A flow on a thread has no owner of this kind.
    """
    if not isinstance(error, asyncio.CancelledError | GeneratorExit) or is_driven():
        return False
    task = asyncio.current_task() if is_in_event_loop() else None
    if isinstance(error, GeneratorExit):
        return task is None  # Its coroutine is closed: nothing runs it.
    return task is not None and not IN_JOB.get() and task.cancelling() > 0


async def absorb_cancellation() -> None:
    """Lets a cancellation arrive that user code has asked for its own job's task, so that it hits nothing else.

    To be awaited behind user code that may run on an event loop.
    """
    if is_driven() or not IN_JOB.get():
        return
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        with contextlib.suppress(asyncio.CancelledError):
            await _turn()
        while task.uncancel():
            pass


@types.coroutine
def _turn() -> Generator[None, None, None]:
    """Lets a turn of the event loop pass."""
    yield


@types.coroutine
def within(context: Context, flow: Awaitable[Result]) -> Generator[Any, Any, Result]:
    """Runs a coroutine in a context, which no other code runs in at that time. For flows, and for event loops."""
    if not isinstance(flow, Coroutine):
        return (yield from flow.__await__())
    step, value = flow.send, None
    while True:
        try:
            awaited = context.run(step, value)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            step, value = flow.send, (yield awaited)
        except BaseException as error:
            step, value = flow.throw, error


@types.coroutine
def until(awaited: Waitable[Result]) -> Generator[Any, Any, Result]:
    """Waits for a result within a flow and returns it; raises its error."""
    if not is_driven():
        return (yield from awaited.__await__())
    result: Result = yield awaited
    return result


async def elsewhere(function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function that blocks; from an event loop, on another thread.

    The call goes on if the task that waits for it is cancelled.
    """
    if not is_driven():
        return await asyncio.shield(asyncio.to_thread(_call, function, *arguments))
    return function(*arguments)


def _call(function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function whose error a future can have: on Python 3.11 one with a `StopIteration` would never end."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise RuntimeError(f"{function!r} raised StopIteration") from error


def drive(flow: Coroutine[Any, Any, Result]) -> Result:
    """Runs a flow to its end and returns its result; raises its error. Blocks. Any thread."""
    try:
        # The first part as `_resume` does it: most flows have no other, and one is run for each job.
        before, _thread.loop = _thread.loop, _get_running_loop()
        try:
            awaited = flow.send(None)
        finally:
            _thread.loop = before
        while True:
            try:
                value = awaited.wait()
            except BaseException as error:
                awaited = _resume(flow.throw, error)
            else:
                awaited = _resume(flow.send, value)
    except StopIteration as end:
        result: Result = end.value
        return result


def blocking(
    flow: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Returns a method that is written as a flow as one that blocks, with the same parameters and documentation.

    So the client for threads has the methods of the one for event loops: `brokers = blocking(AsyncAdmin.brokers)`. Type
    checkers and editors know their parameters, results and texts.
    """

    def run(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return drive(flow(self, *args, **kwargs))

    functools.update_wrapper(run, flow)
    return run


def run_now(flow: Coroutine[Any, Any, Result], name: str) -> Result:
    """Runs a coroutine that waits for nothing, on the calling thread.

    Raises:
        HandlerDidNotRun: It waits for something, and there is no event loop.
    """
    try:
        flow.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    flow.close()
    raise HandlerDidNotRun(
        f"{name}: awaits something around a def handler, which has no event loop; make that async def"
    )


def drive_later(flow: Coroutine[Any, Any, None]) -> None:
    """Runs a flow up to its first wait, and the rest on awoke's callback thread as its results come.

    Does not block where the flow itself does not. The flow waits for the engine's handles only. Any thread, also
    that of an event loop.
    """
    _go_on(flow, flow.send, None)


def _go_on(flow: Coroutine[Any, Any, None], step: Callable[[Any], Any], value: Any) -> None:
    try:
        awaited = _resume(step, value)
    except StopIteration:
        return
    call_back(awaited, lambda awaited: _go_on_with(flow, awaited))


def _go_on_with(flow: Coroutine[Any, Any, None], awaited: Pending[Any]) -> None:
    try:
        value = awaited.result()
    except BaseException as error:
        _go_on(flow, flow.throw, error)
    else:
        _go_on(flow, flow.send, value)


def _resume(step: Callable[[Any], Any], value: Any) -> Any:
    """Runs a flow up to its next wait and returns what it waits for. User code may run a flow within a flow."""
    before, _thread.loop = _thread.loop, _get_running_loop()
    try:
        return step(value)
    finally:
        _thread.loop = before


class FlowLock:
    """A lock for flows. All flows that take it are driven by threads, or all run on one event loop."""

    def __init__(self) -> None:
        self._threads, self._tasks = threading.Lock(), asyncio.Lock()

    async def __aenter__(self) -> None:
        if is_driven():
            self._threads.acquire()
        else:
            await self._tasks.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if is_driven():
            self._threads.release()
        else:
            self._tasks.release()
