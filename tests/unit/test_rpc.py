"""The parts of remote calls that need no broker: registry, turnstile, results, signatures."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.rpc import protocol
from awoke.rpc.errors import KINDS
from awoke.rpc.methods import Rpc
from awoke.rpc.results import Result, Results
from awoke.rpc.turnstile import Turnstile


class Limits(NamedTuple):
    name: str
    concurrency: int | None


class Entry(NamedTuple):
    method: Limits
    number: int
    size_bytes: int = 10


def declare(function: Any, **options: Any) -> None:
    registry = Rpc("shop")
    registry.method(**options)(function)
    registry.prepare()


def with_rest(*args: int) -> None: ...
def with_more(**kwargs: int) -> None: ...
def with_word(timeout_s: float) -> None: ...
def with_place(number: int, /) -> None: ...
def with_unknown(number: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037
def plain(number: int) -> None: ...


@pytest.mark.parametrize("function", [with_rest, with_more, with_word, with_place, with_unknown, int, "text"])
def test_a_function_that_can_not_be_called_by_name_is_refused(function: object) -> None:
    with pytest.raises(awoke.ConfigError, match="rpc method"):
        declare(function)


@pytest.mark.parametrize("options", [{"name": "no name"}, {"name": "x" * 200}, {"concurrency": 0}, {"deadline_s": 0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(awoke.ConfigError, match="rpc method"):
        declare(plain, **options)


def test_a_name_is_taken_once() -> None:
    registry = Rpc("shop")
    registry.method(plain)
    with pytest.raises(awoke.ConfigError, match="has one of this name"):
        registry.method(plain)


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0},
        {"threads": "many"},
        {"patience": 0},
        {"patience": 2},
        {"mode": "twice"},
        {"secret": b""},
        {"nothing": 1},
        {"timeout_max_s": 0},
        {"retry_after_s": -1},
    ],
)
def test_service_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(awoke.ConfigError, match="rpc option"):
        Rpc("shop").options(**options)


def test_every_code_has_its_class() -> None:
    for code, kind in KINDS.items():
        assert kind.code == code
        assert issubclass(kind, rpc.RpcError)
        assert getattr(rpc, kind.__name__) is kind


def test_the_turnstile_keeps_order_and_limits() -> None:
    turnstile = Turnstile(running_max=2, waiting_max=3, waiting_bytes_max=1_000)
    free, single = Limits("free", None), Limits("single", 1)
    first, second = Entry(single, 1), Entry(single, 2)
    assert turnstile.enter(first)
    assert not turnstile.enter(second), "its method has no room"
    third = Entry(free, 3)
    assert turnstile.enter(third), "another method has"
    fourth, fifth = Entry(free, 4), Entry(free, 5)
    assert not turnstile.enter(fourth)
    assert not turnstile.enter(fifth)
    with pytest.raises(rpc.ResourceExhausted):
        turnstile.enter(Entry(free, 6))
    assert (turnstile.running, turnstile.waiting) == (2, 3)
    assert turnstile.leave(third) is fourth, "the second call's method has no room yet"
    assert turnstile.leave(first) is second, "which has waited longest"
    assert turnstile.leave(second) is fifth
    assert turnstile.leave(fourth) is None
    assert turnstile.leave(fifth) is None
    assert (turnstile.running, turnstile.waiting) == (0, 0)


def test_the_turnstile_counts_bytes() -> None:
    turnstile = Turnstile(running_max=1, waiting_max=10, waiting_bytes_max=25)
    limits = Limits("any", None)
    assert turnstile.enter(Entry(limits, 1))
    assert not turnstile.enter(Entry(limits, 2))
    with pytest.raises(rpc.ResourceExhausted):
        turnstile.enter(Entry(limits, 3, size_bytes=16))


def test_results_are_bounded_and_grow_old() -> None:
    now_s = 0.0
    results = Results[str](count_max=2, bytes_max=100, ttl_s=10, clock=lambda: now_s)
    assert results.begin(b"1", "first") is True
    assert results.begin(b"1", "second") is False
    assert results.finish(b"1", Result("reply", b"x" * 40)) == ["second"]
    assert results.begin(b"1", "third") == Result("reply", b"x" * 40)
    assert results.begin(b"2", "failed") is True
    assert results.finish(b"2", None) == []
    assert results.begin(b"2", "again") is True, "what failed may be tried again"
    results.finish(b"2", Result("reply", b"x" * 80))
    assert results.begin(b"1", "fourth") is True, "there was no room for both"
    assert isinstance(results.begin(b"2", "fifth"), Result)
    now_s = 11.0
    assert results.begin(b"2", "sixth") is True, "it was too old"
    assert len(results) == 0


def test_signatures_cover_every_field() -> None:
    headers: dict[str, bytes | None] = {name: name.encode() for name in protocol.SIGNED}
    headers[protocol.SIGNATURE] = protocol.digest(b"k", [*(headers[name] or b"" for name in protocol.SIGNED), b"body"])
    assert protocol.is_signed(b"k", headers, b"body")
    assert not protocol.is_signed(b"other", headers, b"body")
    assert not protocol.is_signed(b"k", headers, b"bodY")
    for name in protocol.SIGNED:
        assert not protocol.is_signed(b"k", {**headers, name: b"changed"}, b"body"), name


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
