"""Attempts at calls: which errors are worth another one, its back-off, and the budget that all calls share."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import awoke
from awoke.rpc import InvalidArgument, NobodyThere, ResourceExhausted, Retries, RpcError, Unavailable
from awoke.rpc.call_options import OutgoingCall
from awoke.rpc.caller.attempts import RetryBudget
from awoke.rpc.caller.exchange import Part
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
    attempts_of,
    connection_of,
    planned,
)


@WAYS
def test_a_rejected_call_is_made_again(run: Run) -> None:
    attempts, call = attempts_of(FakeCaller(BUSY, BUSY, RESULT), AT_ONCE), planned()
    assert run(attempts.result(call)) == 1
    assert call.attempts == 3


@WAYS
@pytest.mark.parametrize(("part", "error"), [(BROKEN, Unavailable), (WRONG, InvalidArgument)])
def test_a_call_that_may_have_been_executed_is_not_made_again(run: Run, part: Part, error: type[Exception]) -> None:
    native = FakeCaller(part, RESULT)
    with pytest.raises(error):
        run(attempts_of(native, AT_ONCE).result(planned()))
    assert native.left() == 1


@WAYS
def test_an_idempotent_call_is_made_again(run: Run) -> None:
    assert run(attempts_of(FakeCaller(BROKEN, RESULT), AT_ONCE).result(planned(idempotent=True))) == 1


@WAYS
def test_attempts_and_the_budget_bound_the_retries(run: Run) -> None:
    native = FakeCaller(*[BUSY] * 4)
    with pytest.raises(ResourceExhausted):
        run(attempts_of(native, AT_ONCE).result(planned()))
    assert native.left() == 1, "three attempts"
    native = FakeCaller(*[BUSY] * 4)
    with pytest.raises(ResourceExhausted):
        run(attempts_of(native, Retries(attempts=9, backoff_s=(0.0, 0.0), budget=1.0)).result(planned()))
    assert native.left() == 2, "one retry in the budget"


@WAYS
def test_no_room_is_a_rejection(run: Run) -> None:
    native = FakeCaller()
    native.is_full = True
    with pytest.raises(ResourceExhausted, match="calls_max") as full:
        run(attempts_of(native, Retries(attempts=1)).result(planned()))
    assert full.value.is_rejected


def test_closing_ends_the_back_off_of_a_blocked_call() -> None:
    native = FakeCaller(BUSY)
    connection = connection_of(native)
    attempts = attempts_of(native, Retries(backoff_s=(LONG_S, LONG_S)), connection)
    connection.open()
    raised = threading.Event()

    def call() -> None:
        with pytest.raises(ResourceExhausted):
            drive(attempts.result(planned()))
        raised.set()

    thread = threading.Thread(target=call)
    thread.start()
    connection.close(0.0)
    thread.join(30)
    assert raised.is_set()


def test_closing_ends_the_back_off_of_a_task() -> None:
    native = FakeCaller(BUSY)
    connection = connection_of(native)
    attempts = attempts_of(native, Retries(backoff_s=(LONG_S, LONG_S)), connection)
    connection.open()

    async def call() -> None:
        task = asyncio.create_task(attempts.result(planned()))
        await asyncio.to_thread(connection.close, 0.0)
        with pytest.raises(ResourceExhausted):
            await asyncio.wait_for(task, 30)

    asyncio.run(call())


def made_before(attempts: int) -> OutgoingCall:
    call = planned()
    call.attempts = attempts
    return call


def rejected(retry_after_s: float | None = None) -> RpcError:
    error = ResourceExhausted("busy", retry_after_s=retry_after_s)
    error.is_rejected = True
    return error


@pytest.mark.parametrize(
    "options", [{"attempts": 0}, {"backoff_s": (-1.0, 1.0)}, {"backoff_s": (2.0, 1.0)}, {"budget": -1.0}]
)
def test_a_policy_that_is_out_of_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        Retries(**options)
    assert refused.value.property == "retries"


def test_the_back_off_doubles_up_to_its_limit() -> None:
    retries = Retries(backoff_s=(1.0, 4.0))
    for attempt, most_s in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 4.0), (10_000, 4.0)):
        assert most_s / 2 <= retries.delay_s(attempt) <= most_s


def test_the_delay_is_at_least_what_the_responder_says() -> None:
    assert RetryBudget(Retries(backoff_s=(0.0, 0.0))).delay_s(planned(), rejected(1.5)) == 1.5


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (planned(), Unavailable("it may have been executed")),
        (planned(idempotent=True), RpcError("not retryable")),
        (planned(idempotent=True), NobodyThere("no member")),
        (made_before(3), rejected()),
        (planned(0.5), rejected(1.0)),
    ],
    ids=["not idempotent", "not retryable", "no responder", "the last attempt", "no time left"],
)
def test_a_call_that_must_not_be_made_again_raises_its_error(call: OutgoingCall, error: RpcError) -> None:
    with pytest.raises(type(error)) as raised:
        RetryBudget(Retries()).delay_s(call, error)
    assert raised.value is error


def test_an_empty_budget_refuses_retries_until_calls_succeed() -> None:
    budget = RetryBudget(Retries(budget=1.0, budget_refill=0.5))
    budget.delay_s(planned(), rejected())
    assert budget.is_short
    with pytest.raises(ResourceExhausted):
        budget.delay_s(planned(), rejected())
    budget.refill()
    with pytest.raises(ResourceExhausted):
        budget.delay_s(planned(), rejected())
    budget.refill()
    assert not budget.is_short
    budget.delay_s(planned(), rejected())


def test_threads_take_no_more_than_the_budget_and_lose_no_refill() -> None:
    budget = RetryBudget(Retries(attempts=10, budget=2_000.0, budget_refill=1.0))
    taken = planned()

    def take_and_refill(_: int) -> None:
        for _ in range(500):
            budget.delay_s(taken, rejected())
        for _ in range(400):
            budget.refill()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take_and_refill, range(4)))
    for _ in range(1_600):
        budget.delay_s(taken, rejected())
    with pytest.raises(ResourceExhausted):
        budget.delay_s(taken, rejected())
