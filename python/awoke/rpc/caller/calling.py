"""Makes calls: each attempt, the wait for its reply, and the next attempt, as flows (`awoke.waiting.drive`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Any

from awoke import _native
from awoke.errors import ClosedError, QueueFull, RpcError
from awoke.observe.events import EventSource
from awoke.payloads.registry.schemas import SchemaNeeded
from awoke.rpc.caller.closing import Closing
from awoke.rpc.caller.opening import Opening
from awoke.rpc.caller.plan import Plan
from awoke.rpc.caller.reading import Part, Reading
from awoke.rpc.caller.retries import RetryBudget
from awoke.rpc.errors import ResourceExhausted
from awoke.waiting.clock import monotonic_s
from awoke.waiting.drive import ResultOf, drive, elsewhere, until
from awoke.waiting.handles import resolve


class Calling:
    """The calls of one caller. Any thread, any event loop."""

    def __init__(self, opening: Opening, reading: Reading, budget: RetryBudget, window: int) -> None:
        self.reading = reading
        self._opening, self._budget, self._window = opening, budget, window
        self.closing = Closing()
        self._opening_lock = threading.Lock()
        self._source: EventSource | None = None
        self._native: _native.Caller | None = None

    @property
    def native(self) -> _native.Caller | None:
        """The engine's caller; None before the first use."""
        return self._native

    def open(self) -> _native.Caller:
        """Returns the engine's caller; opens it on first use, and blocks then.

        Raises:
            ClosedError: the caller was closed before. ConfigError, BrokerUnreachable, UnknownTopic: see `Opening.open`.
        """
        native = self._native
        if native is not None:
            return native
        with self._opening_lock:
            if self._native is None:
                if self.closing.is_closed:
                    raise ClosedError("this caller is closed")
                self._native, self._source = self._opening.open()
            return self._native

    def close(self, timeout_s: float) -> None:
        """Ends all calls, back-offs included, and delivers what was sent. Blocks. Closing again does nothing."""
        self.closing.close()
        with self._opening_lock:
            if self._native is None:
                return
            try:
                self._native.close(timeout_s)
            finally:
                if self._source is not None:
                    self._source.close()

    def result_blocking(self, plan: Plan, returns: Any) -> Any:
        """Makes a call as `result`, and blocks. The first attempt, mostly the only one, needs no flow."""
        plan.attempts += 1
        try:
            part = self.ask(plan)
            try:
                result = self.reading.read(plan, part, returns)
            except SchemaNeeded as needed:
                result = drive(self.reading.loaded(needed, self.reading.read, plan, part, returns))
        except RpcError as error:
            return drive(self._again(plan, returns, error))
        if self._budget.is_short:
            self._budget.refill()
        return result

    async def _again(self, plan: Plan, returns: Any, error: RpcError) -> Any:
        """Makes a call again whose first attempt failed; raises its error if it may not. A flow."""
        if await until(self.closing.pause(self._budget.delay_s(plan, error))):
            raise error
        return await self.result(plan, returns)

    async def result(self, plan: Plan, returns: Any) -> Any:
        """Makes a call, again if it may be retried, and returns its result. A flow."""
        while True:
            plan.attempts += 1
            try:
                part = await until(Attempt(self, plan))
                try:
                    result = self.reading.read(plan, part, returns)
                except SchemaNeeded as needed:
                    result = await self.reading.loaded(needed, self.reading.read, plan, part, returns)
            except RpcError as error:
                if await until(self.closing.pause(self._budget.delay_s(plan, error))):
                    raise
            else:
                if self._budget.is_short:
                    self._budget.refill()
                return result

    async def begin(self, plan: Plan, *, replies: int = 1, window: int | None = None) -> _native.Call:
        """Makes one attempt at a call, waiting for room."""
        if self._native is None:
            await elsewhere(self.open)
        call = self._try_begin(plan, replies, window, may_wait=False)
        if call is None:
            call = await elsewhere(self._begin_blocking, plan, replies, window)
        return call

    async def begin_stream(self, plan: Plan) -> _native.Call:
        """Makes one attempt at the call of a stream."""
        plan.attempts += 1
        return await self.begin(plan, window=self._window)

    async def repeat_stream(self, plan: Plan, error: RpcError) -> _native.Call:
        """Makes the call of a stream again after this error; raises the error if it may not."""
        if not error.is_rejected or await until(self.closing.pause(self._budget.delay_s(plan, error))):
            raise error
        return await self.begin_stream(plan)

    async def next_part(self, call: _native.Call) -> Part | None:
        """Waits for the next reply of a call, or its end."""
        return await until(ResultOf(call))

    def ask(self, plan: Plan) -> Part:
        """Makes one attempt at a call and waits for its reply, in one step of the engine's. Blocks."""
        left_s = plan.until_s - monotonic_s()
        native = self._native or self.open()
        try:
            return native.ask(plan.request(left_s))
        except QueueFull as error:
            raise self._no_room(plan, error) from None

    def _begin_blocking(self, plan: Plan, replies: int, window: int | None) -> _native.Call:
        call = self._try_begin(plan, replies, window, may_wait=True)
        assert call is not None
        return call

    def _try_begin(self, plan: Plan, replies: int, window: int | None, *, may_wait: bool) -> _native.Call | None:
        left_s = plan.until_s - monotonic_s()
        if left_s <= 0:
            raise self.reading.failure(plan, "deadline_exceeded", "")
        native = self._native or self.open()
        try:
            return native.call(plan.request(left_s), replies, window, may_wait)
        except QueueFull as error:
            raise self._no_room(plan, error) from None

    def _no_room(self, plan: Plan, error: QueueFull) -> ResourceExhausted:
        text = f"too many calls are under way: no room within {error.waited_s:.3f} s; see calls_max and bytes_max"
        full = ResourceExhausted(self.reading.named(plan, text))
        full.is_rejected = True
        return full


class Attempt:
    """One attempt at a call, for a flow to wait for; its result is the reply, or the end of the call."""

    __slots__ = ("_calling", "_plan")

    def __init__(self, calling: Calling, plan: Plan) -> None:
        self._calling, self._plan = calling, plan

    def wait(self) -> Part:
        """Makes the attempt and waits for its reply. Blocks."""
        return self._calling.ask(self._plan)

    def __await__(self) -> Generator[Any, Any, Part]:
        return self._resolve().__await__()

    async def _resolve(self) -> Part:
        call = await self._calling.begin(self._plan)
        try:
            part = await resolve(call)
        except asyncio.CancelledError:
            call.cancel()
            raise
        assert part is not None
        return part


Stop = Callable[[list[Any]], bool]
"""Tells, from the results so far, whether they are enough."""
