"""Calls that were made and have their results later: one, a stream of them, or those of several responders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from awoke import _native
from awoke._waiting import call_back, resolve
from awoke.errors import RpcError
from awoke.rpc import protocol
from awoke.rpc.plan import Plan
from awoke.rpc.reading import Part

if TYPE_CHECKING:
    from awoke.rpc.caller import Caller


class PendingResult:
    """A call that was made, and has its result later. Any thread, any event loop."""

    def __init__(self, caller: Caller, plan: Plan, native: _native.Call, returns: Any) -> None:
        self._caller, self._plan, self._native, self._returns = caller, plan, native, returns
        self._part: Part | None = None

    def wait(self, timeout_s: float | None = None) -> Any:
        """Wait for the result, at most until the call's own deadline. Blocks with the GIL released.

        Raises:
            RpcError: the call failed. TimeoutError: no result within `timeout_s`; the call goes on.
        """
        if self._part is None:
            try:
                is_there = self._native.wait(timeout_s)
            except BaseException:
                self.cancel()  # Ctrl-C: nobody waits any more.
                raise
            if not is_there:
                raise TimeoutError(f"{self._plan.method}: no result within {timeout_s} s")
        return self.result()

    def result(self) -> Any:
        """The result, which must be there. Does not block.

        Raises:
            RpcError: the call failed. TimeoutError: there is no result yet.
        """
        if self._part is None:
            part = self._native.result()
            if part is None:
                raise TimeoutError(f"{self._plan.method}: no result yet")
            self._part = part
        return self._caller.reading.read(self._plan, self._part, self._returns)

    def done(self) -> bool:
        """Whether the result is there. Does not block."""
        return self._part is not None or self._native.done()

    def cancel(self) -> bool:
        """Give the call up; its responder is told. False when it had ended. Does not block."""
        return self._native.cancel()

    def add_done_callback(self, callback: Callable[[PendingResult], object]) -> None:
        """Call `callback(self)` when the result is there, on a thread of awoke's; what it raises is logged."""
        call_back(self._native, lambda _: callback(self))

    @property
    def id(self) -> bytes:
        """What the call is named in its headers."""
        return bytes(self._native.id)

    @property
    def woken_at_ns(self) -> int:
        """When the result came, in nanoseconds of `time.monotonic_ns()`; 0 when nobody was waiting for it then."""
        return self._native.woken_at_ns

    def __await__(self) -> Generator[Any, None, Any]:
        return self._resolve().__await__()

    async def _resolve(self) -> Any:
        if self._part is None:
            try:
                self._part = await resolve(self._native)
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self.result()


class Stream:
    """The results of a call, one by one. One thread, or one task, iterates."""

    def __init__(self, caller: Caller, plan: Plan, native: _native.Call, returns: Any) -> None:
        self._caller, self._plan, self._native, self._returns = caller, plan, native, returns

    def __iter__(self) -> Iterator[Any]:
        """Blocks between results. Raises RpcError when the call fails."""
        try:
            while self._native.wait():
                part = self._native.result()
                assert part is not None
                if part[0] == protocol.END:
                    return
                try:
                    item = self._caller.reading.read_item(self._plan, part, self._returns)
                except RpcError as error:
                    self._native = self._caller.stream_again(self._plan, error)
                else:
                    yield item
        finally:
            self.cancel()

    async def __aiter__(self) -> AsyncIterator[Any]:
        """As iterating, on the running loop."""
        try:
            while True:
                part = await resolve(self._native)
                assert part is not None
                if part[0] == protocol.END:
                    return
                try:
                    item = self._caller.reading.read_item(self._plan, part, self._returns)
                except RpcError as error:
                    self._native = await self._caller.astream_again(self._plan, error)
                else:
                    yield item
        finally:
            self.cancel()

    def cancel(self) -> bool:
        """Give the call up; False when it had ended. Does not block."""
        return not self._native.has_ended() and self._native.cancel()


@contextlib.contextmanager
def cancelling(pending: _native.Call) -> Iterator[None]:
    """Cancels a call that has not ended when its wait ends, for whatever reason."""
    try:
        yield
    finally:
        if not pending.has_ended():
            pending.cancel()


class Gathered(NamedTuple):
    """What several responders have said."""

    results: list[Any]
    errors: list[RpcError]
    is_partial: bool
    """Whether the time was up before all of them had answered, or one was enough."""


class Gathering:
    """Replies of several responders, as they come."""

    def __init__(
        self, caller: Caller, plan: Plan, replies: int, until: Callable[[list[Any]], bool] | None, returns: Any
    ) -> None:
        self._caller, self._plan, self._wanted, self._until, self._returns = caller, plan, replies, until, returns
        self._results: list[Any] = []
        self._errors: list[RpcError] = []

    def add(self, part: Part | None) -> bool:
        """Whether that is all."""
        if part is None or part[0] == protocol.END or part[:2] == ("failed", "deadline_exceeded"):
            return True
        try:
            self._results.append(self._caller.reading.read(self._plan, part, self._returns))
        except RpcError as error:
            if part[0] == "failed":
                raise
            self._errors.append(error)
        return self._has_all() or (self._until is not None and self._until(self._results))

    def gathered(self) -> Gathered:
        """What there is."""
        return Gathered(self._results, self._errors, not self._has_all())

    def _has_all(self) -> bool:
        return len(self._results) + len(self._errors) >= self._wanted
