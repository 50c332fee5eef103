"""The policy of retries, and the budget that all calls of a caller share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import awoke
from awoke.rpc import NobodyThere, ResourceExhausted, Retries, RpcError, Unavailable
from awoke.rpc.caller.plan import CallOptions, Plan, Planner
from awoke.rpc.caller.retries import RetryBudget
from tests.unit.rpc.caller.fakes import FORMS


def plan(timeout_s: float = 60.0, *, idempotent: bool = False, attempts: int = 1) -> Plan:
    planner = Planner(timeout_s, frozenset(), True, None, FORMS)
    made = planner.plan("quote", (), {}, CallOptions(idempotent=idempotent))
    made.attempts = attempts
    return made


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
    assert RetryBudget(Retries(backoff_s=(0.0, 0.0))).delay_s(plan(), rejected(1.5)) == 1.5


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (plan(), Unavailable("it may have been executed")),
        (plan(idempotent=True), RpcError("not retryable")),
        (plan(idempotent=True), NobodyThere("no member")),
        (plan(attempts=3), rejected()),
        (plan(0.5), rejected(1.0)),
    ],
    ids=["not idempotent", "not retryable", "no responder", "the last attempt", "no time left"],
)
def test_a_call_that_must_not_be_made_again_raises_its_error(made: Plan, error: RpcError) -> None:
    with pytest.raises(type(error)) as raised:
        RetryBudget(Retries()).delay_s(made, error)
    assert raised.value is error


def test_an_empty_budget_refuses_retries_until_calls_succeed() -> None:
    budget = RetryBudget(Retries(budget=1.0, budget_refill=0.5))
    budget.delay_s(plan(), rejected())
    assert budget.is_short
    with pytest.raises(ResourceExhausted):
        budget.delay_s(plan(), rejected())
    budget.refill()
    with pytest.raises(ResourceExhausted):
        budget.delay_s(plan(), rejected())
    budget.refill()
    assert not budget.is_short
    budget.delay_s(plan(), rejected())


def test_threads_take_no_more_than_the_budget_and_lose_no_refill() -> None:
    budget = RetryBudget(Retries(attempts=10, budget=2_000.0, budget_refill=1.0))
    taken = plan()

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
