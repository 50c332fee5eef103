"""The attempts at a call: each with its wait for the reply, and the decision whether there is another.

They are flows (`awoke.waiting.drive`), so that threads and event loops make them alike.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import msgspec

from awoke import _native
from awoke.errors import ConfigError, QueueFull, RpcError
from awoke.payloads.registry.schemas import SchemaNeeded
from awoke.rpc.call_options import OutgoingCall
from awoke.rpc.caller.connection import CallerConnection
from awoke.rpc.caller.exchange import Part, ReplyReader
from awoke.rpc.errors import NobodyThere, ResourceExhausted
from awoke.waiting.backoff import Backoff
from awoke.waiting.clock import monotonic_s
from awoke.waiting.drive import ResultOf, drive, elsewhere, until
from awoke.waiting.handles import resolve


class Retries(msgspec.Struct, frozen=True):
    """The policy for calls that failed: each is made again within its deadline and under the same idempotency key.

    A call that the responder refused to begin (`RpcError.is_rejected`) is made again. A call that may have been
    executed is made again only if it is idempotent.
    """

    attempts: int = 3
    """Most attempts at one call; 1 for no retries."""
    backoff_s: tuple[float, float] = (0.05, 1.0)
    """Delay after the first failure, doubled after each further one, and its limit."""
    budget: float = 10.0
    """Retries that all calls of a caller share: each takes 1, and with less than 1 left nothing is retried."""
    budget_refill: float = 0.1
    """Part of a retry that each successful call gives back to the budget."""

    def __post_init__(self) -> None:
        first_s, limit_s = self.backoff_s
        if self.attempts < 1 or first_s < 0 or limit_s < first_s or self.budget < 0 or self.budget_refill < 0:
            raise ConfigError(
                "Retries: attempts at least 1, 0 <= first <= limit of backoff_s, nothing negative", "retries"
            )

    def delay_s(self, attempt: int) -> float:
        """Returns the delay after this attempt, from 1, has failed."""
        return Backoff(*self.backoff_s, jitter=0.5).delay_s(attempt)


class RetryBudget:
    """Decides whether a call of one caller is made again. Any thread."""

    def __init__(self, retries: Retries) -> None:
        self.retries = retries
        self._lock = threading.Lock()
        """Guards `_left`."""
        self._left = retries.budget
        self.is_short = False
        """True if a retry was taken and not given back."""

    def delay_s(self, call: OutgoingCall, error: RpcError) -> float:
        """Takes a retry and returns the delay before the call is made again; raises the error if it is not."""
        may_repeat = error.is_rejected or call.is_idempotent
        is_worth_it = error.is_retryable and may_repeat and not isinstance(error, NobodyThere)
        if not is_worth_it or call.attempts >= self.retries.attempts:
            raise error
        delay_s = max(error.retry_after_s or 0.0, self.retries.delay_s(call.attempts))
        if delay_s >= call.left_s():
            raise error
        with self._lock:
            if self._left < 1:
                raise error
            self._left -= 1
            self.is_short = True
        return delay_s

    def refill(self) -> None:
        """Gives a part of a retry back: a call has succeeded."""
        with self._lock:
            self._left = min(self.retries.budget, self._left + self.retries.budget_refill)
            self.is_short = self._left < self.retries.budget


class Attempts:
    """Makes the calls of one caller. Any thread, any event loop."""

    def __init__(self, connection: CallerConnection, reader: ReplyReader, budget: RetryBudget, window: int) -> None:
        self.reader = reader
        self._connection, self._budget, self._window = connection, budget, window

    def result_blocking(self, call: OutgoingCall) -> Any:
        """Makes a call as `result`, and blocks. The first attempt, mostly the only one, needs no flow."""
        call.attempts += 1
        try:
            part = self.ask(call)
            try:
                result = self.reader.read(call, part)
            except SchemaNeeded as needed:
                result = drive(self.reader.loaded(needed, self.reader.read, call, part))
        except RpcError as error:
            return drive(self._again(call, error))
        if self._budget.is_short:
            self._budget.refill()
        return result

    async def _again(self, call: OutgoingCall, error: RpcError) -> Any:
        """Makes a call again whose first attempt failed; raises its error if it may not. A flow."""
        if await self._is_closed_after_backoff(call, error):
            raise error
        return await self.result(call)

    async def result(self, call: OutgoingCall) -> Any:
        """Makes a call, again if it may be retried, and returns its result. A flow."""
        while True:
            call.attempts += 1
            try:
                part = await until(Attempt(self, call))
                try:
                    result = self.reader.read(call, part)
                except SchemaNeeded as needed:
                    result = await self.reader.loaded(needed, self.reader.read, call, part)
            except RpcError as error:
                if await self._is_closed_after_backoff(call, error):
                    raise
            else:
                if self._budget.is_short:
                    self._budget.refill()
                return result

    async def begin(self, call: OutgoingCall, *, replies: int = 1, window: int | None = None) -> _native.Call:
        """Makes one attempt at a call, waiting for room."""
        if self._connection.native is None:
            await elsewhere(self._connection.open)
        begun = self._try_begin(call, replies, window, may_wait=False)
        if begun is None:
            begun = await elsewhere(self._begin_blocking, call, replies, window)
        return begun

    async def begin_stream(self, call: OutgoingCall) -> _native.Call:
        """Makes one attempt at the call of a stream."""
        call.attempts += 1
        return await self.begin(call, window=self._window)

    async def repeat_stream(self, call: OutgoingCall, error: RpcError) -> _native.Call:
        """Makes the call of a stream again after this error; raises the error if it may not."""
        if not error.is_rejected or await self._is_closed_after_backoff(call, error):
            raise error
        return await self.begin_stream(call)

    async def next_part(self, begun: _native.Call) -> Part | None:
        """Waits for the next reply of a call, or its end."""
        return await until(ResultOf(begun))

    def ask(self, call: OutgoingCall) -> Part:
        """Makes one attempt at a call and waits for its reply, in one step of the engine's. Blocks."""
        left_s = call.until_s - monotonic_s()
        native = self._connection.native or self._connection.open()
        try:
            return native.ask(call.request(left_s))
        except QueueFull as error:
            raise self._no_room(call, error) from None

    async def _is_closed_after_backoff(self, call: OutgoingCall, error: RpcError) -> bool:
        """Waits until a call may be made again, or the caller is closed; raises the error if it may not. A flow."""
        return await until(self._connection.pause(self._budget.delay_s(call, error)))

    def _begin_blocking(self, call: OutgoingCall, replies: int, window: int | None) -> _native.Call:
        begun = self._try_begin(call, replies, window, may_wait=True)
        assert begun is not None
        return begun

    def _try_begin(
        self, call: OutgoingCall, replies: int, window: int | None, *, may_wait: bool
    ) -> _native.Call | None:
        left_s = call.until_s - monotonic_s()
        if left_s <= 0:
            raise self.reader.failure(call, "deadline_exceeded", "")
        native = self._connection.native or self._connection.open()
        try:
            return native.call(call.request(left_s), replies, window, may_wait)
        except QueueFull as error:
            raise self._no_room(call, error) from None

    def _no_room(self, call: OutgoingCall, error: QueueFull) -> ResourceExhausted:
        text = f"too many calls are under way: no room within {error.waited_s:.3f} s; see calls_max and bytes_max"
        full = ResourceExhausted(self.reader.named(call, text))
        full.is_rejected = True
        return full


class Attempt:
    """One attempt at a call, for a flow to wait for; its result is the reply, or the end of the call."""

    __slots__ = ("_attempts", "_call")

    def __init__(self, attempts: Attempts, call: OutgoingCall) -> None:
        self._attempts, self._call = attempts, call

    def wait(self) -> Part:
        """Makes the attempt and waits for its reply. Blocks."""
        return self._attempts.ask(self._call)

    def __await__(self) -> Generator[Any, Any, Part]:
        return self._resolve().__await__()

    async def _resolve(self) -> Part:
        begun = await self._attempts.begin(self._call)
        try:
            part = await resolve(begun)
        except asyncio.CancelledError:
            begun.cancel()
            raise
        assert part is not None
        return part
