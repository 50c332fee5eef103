"""Calls that were made and have their results later: one result, a stream, or the results of several responders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, NamedTuple

from awoke import _native
from awoke.errors import RpcError
from awoke.payloads.registry.schemas import SchemaNeeded, load_here
from awoke.rpc import protocol
from awoke.rpc.call_options import OutgoingCall
from awoke.rpc.caller.attempts import Attempts
from awoke.rpc.caller.exchange import Part, ReplyReader
from awoke.waiting.drive import drive
from awoke.waiting.handles import call_back, resolve

END = object()
"""There are no more results."""

Stop = Callable[[list[Any]], bool]
"""Tells, from the results so far, whether they are enough."""


class PendingResult:
    """A call that was made, and has its result later. Any thread, any event loop."""

    def __init__(self, reader: ReplyReader, call: OutgoingCall, native: _native.Call) -> None:
        self._reader, self._call, self._native = reader, call, native
        self._part: Part | None = None

    def wait(self, timeout_s: float | None = None) -> Any:
        """Waits for the result, at most until the call's own deadline. Blocks with the GIL released.

        Raises:
            RpcError: the call failed. TimeoutError: no result within `timeout_s`; the call goes on.
        """
        if self._part is None:
            try:
                is_there = self._native.wait(timeout_s)
            except BaseException:
                self.cancel()  # Ctrl-C: the caller waits no longer.
                raise
            if not is_there:
                raise TimeoutError(f"{self._call.method}: no result within {timeout_s} s")
        return self.result()

    def result(self) -> Any:
        """Returns the result, which must be there. Does not block, except for the schema of its format.

        Raises:
            RpcError: the call failed. TimeoutError: there is no result yet. SchemaNeeded: its format needs a schema,
            and an event loop runs on this thread: await the call.
        """
        if self._part is None:
            part = self._native.result()
            if part is None:
                raise TimeoutError(f"{self._call.method}: no result yet")
            self._part = part
        try:
            return self._reader.read(self._call, self._part)
        except SchemaNeeded as needed:
            return load_here(self._reader.read, needed, self._call, self._part)

    def done(self) -> bool:
        """Tells whether the result is there. Does not block."""
        return self._part is not None or self._native.done()

    def cancel(self) -> bool:
        """Cancels the call and tells its responder; returns False if it had ended. Does not block."""
        return self._native.cancel()

    def add_done_callback(self, callback: Callable[[PendingResult], object]) -> None:
        """Calls `callback(self)` when the result is there, on a thread of awoke's; what it raises is logged."""
        call_back(self._native, lambda _: callback(self))

    @property
    def id(self) -> bytes:
        """The call's id, as in its headers."""
        return bytes(self._native.id)

    @property
    def woken_at_ns(self) -> int:
        """When the result came, in nanoseconds of `time.monotonic_ns()`; 0 if no thread or task was waiting for it."""
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
        assert self._part is not None
        return await self._reader.read_loading(self._reader.read, self._call, self._part)


class Stream:
    """The results of a call, one by one. One thread, or one task, iterates."""

    def __init__(self, attempts: Attempts, call: OutgoingCall, native: _native.Call) -> None:
        self._attempts, self._call, self._native = attempts, call, native

    def __iter__(self) -> Iterator[Any]:
        """Blocks between results. Raises RpcError when the call fails."""
        with self._cancelled_at_end():
            while (item := drive(self._next())) is not END:
                yield item

    async def __aiter__(self) -> AsyncIterator[Any]:
        """As iterating, on the running loop."""
        with self._cancelled_at_end():
            while (item := await self._next()) is not END:
                yield item

    @contextlib.contextmanager
    def _cancelled_at_end(self) -> Iterator[None]:
        """Cancels the call when its iteration ends, for any reason."""
        try:
            yield
        finally:
            self.cancel()

    async def _next(self) -> Any:
        """Returns the next result, or `END`. A flow."""
        attempts, reader = self._attempts, self._attempts.reader
        while True:
            part = await attempts.next_part(self._native)
            if part is None or part[0] == protocol.END:
                return END
            try:
                return await reader.read_loading(reader.read_item, self._call, part)
            except RpcError as error:
                self._native = await attempts.repeat_stream(self._call, error)

    def cancel(self) -> bool:
        """Cancels the call; returns False if it had ended. Does not block."""
        return not self._native.has_ended() and self._native.cancel()


@contextlib.contextmanager
def cancelling(pending: _native.Call) -> Iterator[None]:
    """Cancels a call that has not ended when its wait ends, for any reason."""
    try:
        yield
    finally:
        if not pending.has_ended():
            pending.cancel()


class Gathered(NamedTuple):
    """The replies of several responders."""

    results: list[Any]
    errors: list[RpcError]
    is_partial: bool
    """True if the time was up before all of them had answered, or fewer were enough."""


class ScatteredCall:
    """A call of several responders, which collects their replies as they come."""

    def __init__(self, attempts: Attempts, call: OutgoingCall, replies: int, is_enough: Stop | None) -> None:
        self._attempts, self._call, self._replies, self._is_enough = attempts, call, replies, is_enough
        self._results: list[Any] = []
        self._errors: list[RpcError] = []

    async def gather(self) -> Gathered:
        """Makes the call and waits until there are enough replies, or the time is up. A flow."""
        begun = await self._attempts.begin(self._call, replies=self._replies)
        with cancelling(begun):
            while not await self._add(await self._attempts.next_part(begun)):
                pass
        return Gathered(self._results, self._errors, not self._has_all())

    async def _add(self, part: Part | None) -> bool:
        """Adds a reply; returns whether there are enough. A flow."""
        if part is None or part[0] == protocol.END or part[:2] == ("failed", "deadline_exceeded"):
            return True
        reader = self._attempts.reader
        try:
            self._results.append(await reader.read_loading(reader.read, self._call, part))
        except RpcError as error:
            if part[0] == "failed":
                raise
            self._errors.append(error)
        return self._has_all() or (self._is_enough is not None and self._is_enough(self._results))

    def _has_all(self) -> bool:
        return len(self._results) + len(self._errors) >= self._replies
