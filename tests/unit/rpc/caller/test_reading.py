"""The parts of a call as results or errors: each names its method."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from awoke import rpc
from awoke.errors import ClosedError, DecodeError
from awoke.rpc.caller.plan import Plan
from awoke.rpc.caller.reading import Part, Reading
from awoke.rpc.errors import KINDS
from awoke.rpc.protocol import problem_of
from tests.unit.rpc.caller.fakes import FORMS, plan


class Money(msgspec.Struct):
    amount: float


class OutOfStock(rpc.RpcError):
    code = "out_of_stock"


READING = Reading("shop", {**KINDS, OutOfStock.code: OutOfStock}, FORMS)


@pytest.fixture
def made() -> Plan:
    return plan(timeout_s=2.5)


def error_in(part: Part, made: Plan) -> rpc.RpcError:
    with pytest.raises(rpc.RpcError) as raised:
        READING.read(made, part, Any)
    return raised.value


@pytest.mark.parametrize(
    ("body", "returns", "result"),
    [
        (b'{"amount":2}', Any, {"amount": 2}),
        (b'{"amount":2}', Money, Money(2.0)),
        (b"null", None, None),
        (b'"text"', str, "text"),
    ],
)
def test_a_reply_is_read_as_what_was_asked_for(made: Plan, body: bytes, returns: Any, result: Any) -> None:
    assert READING.read(made, ("reply", body, None), returns) == result
    assert READING.read_item(made, ("item", body, None), returns) == result


@pytest.mark.parametrize(
    ("body", "returns", "named"),
    [(b"{", Any, "JSON"), (b'"a"', int, "int"), (b'"\xff"', Any, "JSON"), (b"[" * 100_000, Any, "JSON")],
    ids=["no JSON", "another type", "no text", "too deep"],
)
def test_a_reply_that_can_not_be_read_names_method_and_type(made: Plan, body: bytes, returns: Any, named: str) -> None:
    with pytest.raises(DecodeError, match=rf"shop\.quote can't be read as .*{named}"):
        READING.read(made, ("reply", body, None), returns)


def test_a_stream_is_not_one_result(made: Plan) -> None:
    for kind in ("item", "end"):
        with pytest.raises(rpc.InvalidArgument, match=r"shop\.quote returns a stream .* use stream"):
            READING.read(made, (kind, b"1", None), Any)


def test_an_error_comes_with_all_that_the_responder_says(made: Plan) -> None:
    problem = rpc.ResourceExhausted("busy", details={"queue": 7}, retry_after_s=1.5)
    error = error_in(("error", problem_of(problem, "a trace", is_rejected=True), None), made)
    assert type(error) is rpc.ResourceExhausted
    assert (error.message, error.details, error.retry_after_s) == ("busy", {"queue": 7}, 1.5)
    assert (error.is_rejected, error.is_retryable, error.remote_traceback) == (True, True, "a trace")


def test_a_code_of_the_service_has_the_class_that_the_caller_knows(made: Plan) -> None:
    assert type(error_in(("error", b'{"code":"out_of_stock","message":"none"}', None), made)) is OutOfStock
    unknown = error_in(("error", b'{"code":"sold","message":"none"}', None), made)
    assert (type(unknown), unknown.code) == (rpc.RpcError, "sold")


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_an_error_that_can_not_be_read_is_internal(made: Plan, body: bytes) -> None:
    error = error_in(("error", body, None), made)
    assert type(error) is rpc.Internal
    assert "shop.quote: its error can't be read" in error.message


def test_a_call_that_ends_at_its_deadline_tells_its_time(made: Plan) -> None:
    error = error_in(("failed", "deadline_exceeded", ""), made)
    assert type(error) is rpc.DeadlineExceeded
    assert error.message == "shop.quote: no reply within 2.5 s; it may still be executed"


def test_a_closed_caller_is_no_error_of_the_service(made: Plan) -> None:
    with pytest.raises(ClosedError, match=r"shop\.quote: this caller is closed"):
        READING.read(made, ("failed", "closed", "this caller is closed"), Any)


def test_without_a_responder_the_other_group_is_named(made: Plan) -> None:
    error = error_in(("failed", "nobody_there", "the group has no member"), made)
    assert type(error) is rpc.NobodyThere
    assert "say so with group=" in error.message


def test_a_full_caller_is_not_worth_another_try(made: Plan) -> None:
    full = error_in(("failed", "resource_exhausted", "too many"), made)
    assert (type(full), full.is_retryable) == (rpc.ResourceExhausted, False)
    gone = error_in(("failed", "unavailable", "no broker"), made)
    assert (type(gone), gone.is_retryable) == (rpc.Unavailable, True)
