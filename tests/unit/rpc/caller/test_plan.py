"""The parts of a call: its time, its keys and its headers."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from awoke.errors import ConfigError, EncodeError
from awoke.observe.tracing import Tracer
from awoke.rpc.caller.plan import CallOptions, Plan, Planner
from awoke.rpc.context import current
from awoke.waiting.clock import monotonic_s
from tests.unit.rpc.caller.fakes import FORMS


class FakeTracer:
    def headers(self, pairs: list[Any]) -> list[Any]:
        return [*pairs, ("traceparent", b"00")]


def planner(*, is_retried: bool = True, tracer: Any = None) -> Planner:
    return Planner(5.0, frozenset({"find"}), is_retried, cast("Tracer | None", tracer), FORMS)


def plan(made: Planner, method: str = "quote", *args: Any, kwargs: Any = None, **options: Any) -> Plan:
    return made.plan(method, args, kwargs or {}, CallOptions(**options))


@pytest.fixture
def executing() -> Iterator[None]:
    """Within a call whose caller waits for two more seconds."""
    token = current.set(cast(Any, SimpleNamespace(remaining_s=2.0)))
    yield
    current.reset(token)


def test_arguments_are_the_body() -> None:
    assert plan(planner(), "quote", "A1", 2).body == b'["A1",2]'
    assert plan(planner(), kwargs={"sku": "A1"}).body == b'{"sku":"A1"}'


def test_the_time_of_a_call_is_its_own_or_else_the_callers() -> None:
    assert plan(planner()).timeout_s == 5.0
    made = plan(planner(), timeout_s=60.0)
    assert made.timeout_s == 60.0
    assert 59.0 < made.left_s() <= 60.0
    assert made.until_s <= monotonic_s() + 60.0


def test_a_call_whose_time_is_over_has_less_than_nothing_left() -> None:
    assert plan(planner(), timeout_s=-1.0).left_s() < 0


@pytest.mark.parametrize(("timeout_s", "found_s"), [(None, 2.0), (60.0, 2.0), (0.5, 0.5)])
def test_a_call_within_a_call_waits_no_longer_than_the_outer_one(
    executing: None, timeout_s: float | None, found_s: float
) -> None:
    assert plan(planner(), timeout_s=timeout_s).timeout_s == found_s


@pytest.mark.parametrize(
    ("method", "idempotent", "is_idempotent"),
    [("quote", None, False), ("find", None, True), ("find", False, False), ("quote", True, True)],
)
def test_a_call_is_idempotent_if_it_or_the_caller_says_so(
    method: str, idempotent: bool | None, is_idempotent: bool
) -> None:
    made = plan(planner(), method, idempotent=idempotent)
    assert made.is_idempotent is is_idempotent
    assert (made.idempotency_key is not None) is is_idempotent


def test_each_idempotent_call_has_a_key_of_its_own_for_all_its_attempts() -> None:
    first, second = (plan(planner(), "find").idempotency_key for _ in range(2))
    assert first != second


def test_without_retries_no_key_is_needed() -> None:
    made = plan(planner(is_retried=False), "find")
    assert (made.is_idempotent, made.idempotency_key) == (True, None)


def test_the_key_of_the_user_makes_a_call_idempotent() -> None:
    made = plan(planner(is_retried=False), idempotency_key="order 1")
    assert (made.is_idempotent, made.idempotency_key) == (True, b"order 1")
    assert plan(planner(), idempotency_key=b"\x00").idempotency_key == b"\x00"


@pytest.mark.parametrize(("key", "found"), [(None, None), ("ä", b"\xc3\xa4"), (b"\x00", b"\x00")])
def test_the_key_of_the_order_is_bytes(key: Any, found: bytes | None) -> None:
    assert plan(planner(), key=key).key == found


def test_headers_are_those_of_the_user_and_of_the_trace() -> None:
    assert plan(planner()).headers is None
    assert plan(planner(), headers={"tenant": "a"}).headers == [("tenant", "a")]
    tracer = FakeTracer()
    assert plan(planner(tracer=tracer)).headers == [("traceparent", b"00")]
    assert plan(planner(tracer=tracer), headers={"tenant": "a"}).headers == [("tenant", "a"), ("traceparent", b"00")]


def test_headers_of_the_protocol_are_refused() -> None:
    with pytest.raises(ValueError, match="rpc- belong to the protocol"):
        plan(planner(), headers={"rpc-kind": "cast"})


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("A1",), {"kwargs": {"sku": "A1"}}, TypeError),
        ((object(),), {}, EncodeError),
        ((), {"returns": Planner}, ConfigError),
    ],
    ids=["both", "no JSON", "no result"],
)
def test_a_call_that_can_not_work_is_not_made(arguments: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        plan(planner(), "quote", *arguments, **options)
