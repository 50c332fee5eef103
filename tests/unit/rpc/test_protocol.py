"""The bodies of requests and errors."""

from __future__ import annotations

import msgspec
import pytest

from awoke import rpc
from awoke.rpc import protocol


def test_arguments_are_named_or_in_order() -> None:
    assert protocol.arguments_of((), {"a": 1}) == b'{"a":1}'
    assert protocol.arguments_of((1, "b"), {}) == b'[1,"b"]'
    with pytest.raises(TypeError):
        protocol.arguments_of((1,), {"a": 1})


def test_an_error_goes_there_and_back() -> None:
    error = rpc.NotFound("gone", details={"id": 1}, retry_after_s=1.5)
    problem = protocol.read_problem(protocol.problem_of(error))
    assert (problem.code, problem.message, problem.details, problem.retry_after_s) == (
        "not_found",
        "gone",
        {"id": 1},
        1.5,
    )
    with pytest.raises(msgspec.MsgspecError):
        protocol.read_problem(b"[]")


def test_a_rejection_of_another_call_is_not_passed_on() -> None:
    error = rpc.ResourceExhausted("busy")
    error.is_rejected = True
    assert not protocol.read_problem(protocol.problem_of(error)).is_rejected
    assert protocol.read_problem(protocol.problem_of(error, is_rejected=True)).is_rejected
