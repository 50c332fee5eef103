"""Calls, their retries and the end of their back-off, with a fake of the engine's caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from awoke import _native
from awoke.drive import drive, until
from awoke.errors import ClosedError, QueueFull
from awoke.rpc import InvalidArgument, ResourceExhausted, Retries, Unavailable
from awoke.rpc.caller.calling import Calling
from awoke.rpc.caller.closing import Closing
from awoke.rpc.caller.opening import Opening
from awoke.rpc.caller.plan import CallOptions, Plan, Planner
from awoke.rpc.caller.reading import Part, Reading
from awoke.rpc.caller.retries import RetryBudget
from awoke.rpc.errors import KINDS
from awoke.rpc.protocol import problem_of

LONG_S = 600.0
"""A back-off that a test ends early."""

RESULT: Part = ("reply", b"1", None)
BUSY: Part = ("error", problem_of(ResourceExhausted("busy"), is_rejected=True), None)
BROKEN: Part = ("error", problem_of(Unavailable("broken")), None)
WRONG: Part = ("error", problem_of(InvalidArgument("wrong")), None)

Run = Callable[[Coroutine[Any, Any, Any]], Any]
WAYS = pytest.mark.parametrize("run", [drive, asyncio.run], ids=["blocking", "loop"])


class FakeCall:
    """A call of the engine's that has its part."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def done(self) -> bool:
        return True

    def result(self) -> Part:
        return self._part


class FakeCaller:
    """The engine's caller: gives these parts, one for each attempt."""

    def __init__(self, *parts: Part) -> None:
        self._parts = list(parts)
        self.is_full = False

    def ask(self, *_: Any) -> Part:
        if self.is_full:
            raise QueueFull("full", 0.1)
        return self._parts.pop(0)

    def call(self, *_: Any, **__: Any) -> FakeCall:
        return FakeCall(self.ask())

    def close(self, _: float) -> None: ...

    def left(self) -> int:
        return len(self._parts)


class FakeSource:
    """The events of a caller."""

    def close(self) -> None: ...


class FakeOpening:
    """Opens a fake."""

    def __init__(self, native: FakeCaller) -> None:
        self._native = native

    def open(self) -> tuple[_native.Caller, FakeSource]:
        return cast(_native.Caller, self._native), FakeSource()


def calling_of(native: FakeCaller, retries: Retries) -> Calling:
    return Calling(cast(Opening, FakeOpening(native)), Reading("shop", KINDS), RetryBudget(retries), 4)


def plan(**options: Any) -> Plan:
    planner = Planner(2 * LONG_S, frozenset(), True, None)
    return planner.plan("quote", (), {}, CallOptions(**options))


AT_ONCE = Retries(attempts=3, backoff_s=(0.0, 0.0))


@WAYS
def test_a_rejected_call_is_made_again(run: Run) -> None:
    calling, made = calling_of(FakeCaller(BUSY, BUSY, RESULT), AT_ONCE), plan()
    assert run(calling.result(made, Any)) == 1
    assert made.attempts == 3


@WAYS
@pytest.mark.parametrize(("part", "error"), [(BROKEN, Unavailable), (WRONG, InvalidArgument)])
def test_a_call_that_may_have_been_executed_is_not_made_again(run: Run, part: Part, error: type[Exception]) -> None:
    native = FakeCaller(part, RESULT)
    with pytest.raises(error):
        run(calling_of(native, AT_ONCE).result(plan(), Any))
    assert native.left() == 1


@WAYS
def test_an_idempotent_call_is_made_again(run: Run) -> None:
    assert run(calling_of(FakeCaller(BROKEN, RESULT), AT_ONCE).result(plan(idempotent=True), Any)) == 1


@WAYS
def test_attempts_and_the_budget_bound_the_retries(run: Run) -> None:
    native = FakeCaller(*[BUSY] * 4)
    with pytest.raises(ResourceExhausted):
        run(calling_of(native, AT_ONCE).result(plan(), Any))
    assert native.left() == 1, "three attempts"
    native = FakeCaller(*[BUSY] * 4)
    with pytest.raises(ResourceExhausted):
        run(calling_of(native, Retries(attempts=9, backoff_s=(0.0, 0.0), budget=1.0)).result(plan(), Any))
    assert native.left() == 2, "one retry in the budget"


@WAYS
def test_no_room_is_a_rejection(run: Run) -> None:
    native = FakeCaller()
    native.is_full = True
    with pytest.raises(ResourceExhausted, match="calls_max") as full:
        run(calling_of(native, Retries(attempts=1)).result(plan(), Any))
    assert full.value.is_rejected


def test_closing_ends_the_back_off_of_a_blocked_call() -> None:
    calling = calling_of(FakeCaller(BUSY), Retries(backoff_s=(LONG_S, LONG_S)))
    calling.open()
    raised = threading.Event()

    def call() -> None:
        with pytest.raises(ResourceExhausted):
            drive(calling.result(plan(), Any))
        raised.set()

    thread = threading.Thread(target=call)
    thread.start()
    calling.close(0.0)
    thread.join(30)
    assert raised.is_set()


def test_closing_ends_the_back_off_of_a_task() -> None:
    calling = calling_of(FakeCaller(BUSY), Retries(backoff_s=(LONG_S, LONG_S)))
    calling.open()

    async def call() -> None:
        task = asyncio.create_task(calling.result(plan(), Any))
        await asyncio.to_thread(calling.close, 0.0)
        with pytest.raises(ResourceExhausted):
            await asyncio.wait_for(task, 30)

    asyncio.run(call())


def test_a_caller_that_was_closed_before_its_first_use_is_not_opened() -> None:
    calling = calling_of(FakeCaller(RESULT), AT_ONCE)
    calling.close(0.0)
    with pytest.raises(ClosedError):
        calling.open()


@WAYS
def test_a_pause_ends_with_its_time_or_at_once_when_closed(run: Run) -> None:
    closing = Closing()

    async def paused(delay_s: float) -> bool:
        return await until(closing.pause(delay_s))

    assert run(paused(0.0)) is False
    closing.close()
    assert run(paused(LONG_S)) is True
