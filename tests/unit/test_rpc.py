"""The parts of remote calls that need no broker: registry, options, arguments, errors."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.errors import PERMANENT_CODES
from awoke.rpc import protocol
from awoke.rpc.errors import KINDS, error_of
from awoke.rpc.responder.methods import Rpc


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
        {"queue_time_share_max": 0},
        {"queue_time_share_max": 2},
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


@pytest.mark.parametrize("options", [{"group": ""}, {"group": "shop-eu", "checks_group": False}])
def test_a_group_that_can_not_be_looked_at_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(awoke.ConfigError) as refused:
        rpc.Caller("shop", "127.0.0.1:1", **options)
    assert refused.value.property == "group"


def test_every_code_has_an_http_status_and_stands_in_the_protocol() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "rpc_protocol.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| [^|]+ \| (\d{3}) \|$", page, re.MULTILINE)
    documented = {code: int(status) for code, status in rows}
    assert documented == {code: rpc.http_status(kind("")) for code, kind in KINDS.items()}


def test_every_code_of_the_engine_has_its_class() -> None:
    source = (
        Path(__file__).resolve().parents[2] / "crates" / "engine" / "src" / "rpc" / "caller" / "call.rs"
    ).read_text()
    codes = set(re.findall(r'\(\s*"([a-z_]+)",', source[source.index("fn explain(") :]))
    assert codes >= {"deadline_exceeded", "nobody_there"}
    assert codes - {"closed"} <= set(KINDS)


def test_the_engine_knows_the_refusals_that_are_for_good() -> None:
    source = (Path(__file__).resolve().parents[2] / "crates" / "kafka" / "src" / "code.rs").read_text()
    codes = re.search(r"fn is_refused_for_good.*?matches!\(self\.0, (.*?)\)", source, re.DOTALL)
    assert codes is not None
    assert {int(code) for code in codes[1].split(" | ")} == PERMANENT_CODES


class OutOfStock(rpc.FailedPrecondition):
    code = "out_of_stock"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (rpc.NotFound("gone"), 404),
        (rpc.NobodyThere("no one"), 503),
        (OutOfStock("none left"), 400),
        (error_of("not_found", "of a code"), 404),
        (error_of("out_of_stock", "of an unknown code"), 500),
        (awoke.ClosedError("closed"), 503),
        (TimeoutError(), 504),
        (asyncio.CancelledError(), 499),
        (ValueError("else"), 500),
    ],
)
def test_an_error_has_an_http_status(error: BaseException, status: int) -> None:
    assert rpc.http_status(error) == status
