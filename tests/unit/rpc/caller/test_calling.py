"""Calls, their retries and the end of their back-off, with a fake of the engine's caller."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from awoke.errors import ClosedError
from awoke.rpc import InvalidArgument, ResourceExhausted, Retries, Unavailable
from awoke.rpc.caller.reading import Part
from awoke.waiting.drive import drive
from tests.unit.rpc.caller.fakes import (
    AT_ONCE,
    BROKEN,
    BUSY,
    LONG_S,
    RESULT,
    WAYS,
    WRONG,
    FakeCaller,
    Run,
    calling_of,
    plan,
)


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
