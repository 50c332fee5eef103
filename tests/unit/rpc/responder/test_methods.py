"""The methods of a service: their options, their arguments, their description, and the errors that they raise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Annotated, Any, cast

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.rpc.context import current
from awoke.rpc.protocol import METHODS
from awoke.rpc.responder.methods import Method, Rpc


def declare(function: Any, **options: Any) -> Method:
    registry = Rpc("shop")
    registry.method(**options)(function)
    registry.prepare()
    (method,) = [each for name, each in registry.methods.items() if name != METHODS]
    return method


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


def test_options_that_were_set_before_stay() -> None:
    registry = Rpc("shop")
    registry.options(threads=3)
    registry.options(tasks=7, secret=b"hunter2")
    assert (registry.settings.threads, registry.settings.tasks) == (3, 7)
    assert "hunter2" not in repr(registry.settings)


def stream() -> Iterator[int]:
    yield 1


async def astream() -> AsyncIterator[int]:
    yield 1


async def aplain() -> int:
    return 1


@pytest.mark.parametrize(
    ("function", "is_async", "is_stream"),
    [(plain, False, False), (aplain, True, False), (stream, False, True), (astream, True, True)],
)
def test_a_function_says_by_its_kind_where_it_runs_and_what_it_gives(
    function: Any, is_async: bool, is_stream: bool
) -> None:
    method = declare(function)
    assert (method.is_async, method.is_stream) == (is_async, is_stream)


@pytest.mark.parametrize(
    ("callers", "allowed"), [(None, None), ("web", {"web"}), (["web", "shop"], {"web", "shop"}), ([], set())]
)
def test_a_method_may_be_for_some_callers_only(callers: Any, allowed: set[str] | None) -> None:
    assert declare(plain, callers=callers).callers == allowed


class Money(msgspec.Struct):
    amount: float


def pay(price: Money, note: str = "none") -> None: ...


def test_arguments_are_read_as_the_annotations_say() -> None:
    method = declare(pay)
    assert method.arguments(b'{"price":{"amount":2}}')["price"] == Money(2.0)
    assert method.arguments(b'[{"amount":2},"thanks"]') == {"price": Money(2.0), "note": "thanks"}


@pytest.mark.parametrize(
    "body", [b"{}", b'{"price":1}', b'{"price":{"amount":1},"more":1}', b"{", b'{"note":"\xff"}', b"[" * 100_000]
)
def test_arguments_that_are_wrong_name_the_method(body: bytes) -> None:
    with pytest.raises(rpc.InvalidArgument, match=r"^pay: ") as refused:
        declare(pay).arguments(body)
    assert refused.value.details == {"method": "pay"}


def test_annotations_may_name_what_is_defined_later() -> None:
    registry = Rpc("shop")

    def quote(price: Later) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    registry.method(quote)
    quote.__globals__["Later"] = Money
    try:
        registry.prepare()
        assert registry.methods["quote"].arguments(b'{"price":{"amount":2}}') == {"price": Money(2.0)}
    finally:
        del quote.__globals__["Later"]


def test_a_service_describes_the_methods_that_the_caller_may_call() -> None:
    registry = Rpc("shop")

    @registry.method(idempotent=True)
    def quote(sku: str, secret: str = "hunter2") -> list[Money]:
        """The price of some."""
        return []

    @registry.method(callers=["billing"])
    def charge() -> None: ...

    registry.method(name="a.stream")(stream)
    registry.prepare()
    describe = registry.methods[METHODS].function
    found = describe()
    assert [each["name"] for each in found] == ["a.stream", "quote"]
    assert (found[0]["is_stream"], found[0]["result_type"]) == (True, "int")
    assert found[1]["signature"].startswith("quote(sku: str, secret: str = ...)")
    assert (found[1]["doc"], found[1]["is_idempotent"]) == ("The price of some.", True)
    token = current.set(cast(Any, SimpleNamespace(caller="billing")))
    try:
        assert [each["name"] for each in describe()] == ["a.stream", "charge", "quote"]
    finally:
        current.reset(token)


def test_a_service_may_be_prepared_again() -> None:
    registry = Rpc("shop")
    registry.method(plain)
    registry.prepare()
    registry.prepare()
    assert sorted(registry.methods) == ["plain", METHODS]


class OutOfStock(rpc.RpcError):
    code = "out_of_stock"


def test_an_exception_has_the_error_that_it_or_its_nearest_base_is_mapped_to() -> None:
    registry = Rpc("shop")
    registry.map_error(LookupError, rpc.NotFound)
    registry.map_error(KeyError, OutOfStock)
    registry.map_error(ZeroDivisionError, "aborted")
    registry.map_error(OSError, "no_disk")
    assert type(registry.error_of(IndexError("A1"))) is rpc.NotFound
    assert type(registry.error_of(KeyError("A1"))) is OutOfStock
    assert registry.error_of(IndexError("A1")).message == "A1"
    assert type(registry.error_of(ZeroDivisionError("by zero"))) is rpc.Aborted
    assert registry.error_of(FileNotFoundError("gone")).code == "no_disk"


def test_other_errors_are_sent_as_they_are_or_as_internal_ones() -> None:
    registry, own = Rpc("shop"), rpc.NotFound("gone")
    assert registry.error_of(own) is own
    assert registry.error_of(ValueError("hunter2")).message == "ValueError; the service's log says more"
    registry.options(tracebacks=True)
    assert registry.error_of(ValueError("because")).message == "ValueError: because"
    assert registry.error_of(KeyboardInterrupt()).message == "the responder ends"


@pytest.mark.parametrize(("kind", "to"), [(int, rpc.NotFound), (ValueError, int), (SystemExit, "aborted")])
def test_only_exceptions_are_mapped_and_only_to_errors(kind: Any, to: Any) -> None:
    with pytest.raises(awoke.ConfigError, match="can't be mapped"):
        Rpc("shop").map_error(kind, to)


def database() -> str:
    return "db"


def test_a_mark_of_a_handler_s_parameter_is_refused_as_callers_give_all_arguments() -> None:
    def save(order: int, db: Annotated[str, awoke.Depends(database)]) -> None: ...

    with pytest.raises(awoke.ConfigError, match="parameter 'db': callers give all arguments of a method"):
        awoke.App("shop").rpc.method(save)
