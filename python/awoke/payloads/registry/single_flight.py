"""Single flight: flows that ask for the same at the same time share one request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from awoke.errors import AwokeError
from awoke.waiting.drive import until

Result = TypeVar("Result")
Outcome = tuple[Result] | AwokeError | None
"""The result; the error, for all who asked; or None: the flow ended without either, and another one runs.

No future has an error: asyncio would log that of one whose task was cancelled."""


class SingleFlight(Generic[Result]):
    """Runs one flow for each key at a time. Any thread and any event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Hashable, Future[Outcome[Result]]] = {}
        """The outcomes to come; under the lock."""

    async def run(self, key: Hashable, flow: Callable[[], Awaitable[Result]]) -> Result:
        """Runs the flow, or waits for the one that runs for this key, and returns its result; raises its error.

        The wait ends when that flow ends: its requests have deadlines.
        """
        while True:
            with self._lock:
                running = self._running.get(key)
                if running is None:
                    own = self._running[key] = Future[Outcome[Result]]()
            if running is None:
                return await self._lead(key, flow, own)
            outcome = await until(_Shared(running))
            if isinstance(outcome, AwokeError):
                raise outcome
            if outcome is not None:
                return outcome[0]

    async def _lead(self, key: Hashable, flow: Callable[[], Awaitable[Result]], own: Future[Outcome[Result]]) -> Result:
        # None stays if the task is cancelled, or the thread interrupted, which is no concern of the others.
        outcome: Outcome[Result] = None
        try:
            result = await flow()
            outcome = (result,)
            return result
        except AwokeError as error:
            outcome = error
            raise
        finally:
            with self._lock:
                del self._running[key]
            own.set_result(outcome)


class _Shared(Generic[Result]):
    """The outcome of another flow, for a flow to wait for."""

    def __init__(self, future: Future[Result]) -> None:
        self._future = future

    def wait(self) -> Result:
        """Waits on the calling thread."""
        return self._future.result()

    def __await__(self) -> Generator[Any, Any, Result]:
        # Shielded: a task that is cancelled must not cancel the future, which is the others', too.
        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()
