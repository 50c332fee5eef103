"""Methods over Kafka: their arguments and results, their errors, and what callers are told of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import awoke
from awoke import rpc
from tests.support.clusters import Cluster, MockCluster
from tests.support.services import WITHIN_S, calling, new_app
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


class Money(msgspec.Struct):
    amount: float
    currency: str = "EUR"


class OutOfStock(rpc.RpcError):
    code = "out_of_stock"


def test_arguments_and_results_are_typed(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> Money:
        return Money(quantity * len(sku))

    @app.rpc.method(name="shop.aquote")
    async def aquote(price: Money, note: str | None = None) -> dict[str, object]:
        return {"amount": price.amount, "note": note}

    with calling(app) as caller:
        assert caller.call("quote", sku="A1", quantity=3, returns=Money) == Money(6)
        assert caller.call("quote", "A1") == {"amount": 2, "currency": "EUR"}
        assert caller.call("shop.aquote", price=Money(2)) == {"amount": 2, "note": None}
        assert caller.proxy().quote(sku="A") == {"amount": 1, "currency": "EUR"}
        with pytest.raises(awoke.DecodeError, match="quote"):
            caller.call("quote", sku="A", returns=int)
        with pytest.raises(TypeError):
            caller.call("quote", "A", quantity=1)
        with pytest.raises(awoke.EncodeError):
            caller.call("quote", sku=object())
        with pytest.raises(ValueError, match="belong to the protocol"):
            caller.call("quote", sku="A", headers={"rpc-kind": "cast"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "required field `sku`"),
        ({"sku": 1}, "Expected `str`"),
        ({"sku": "A", "quantity": 1.5}, "quantity"),
        ({"sku": "A", "color": "red"}, "unknown field `color`"),
    ],
    ids=["missing", "type", "fraction", "unknown"],
)
def test_wrong_arguments_are_refused_before_the_method_is_called(
    cluster: Cluster, arguments: dict[str, Any], words: str
) -> None:
    app, called = new_app(cluster), threading.Event()

    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> None:
        called.set()

    with calling(app) as caller:
        with pytest.raises(rpc.InvalidArgument, match=words):
            caller.call("quote", **arguments)
        with pytest.raises(rpc.InvalidArgument, match="takes 2 arguments, 3 were given"):
            caller.call("quote", "A", 1, 2)
        with pytest.raises(rpc.Unimplemented, match="no method 'quota'"):
            caller.call("quota")
    assert not called.is_set()


def test_errors_come_back_typed_and_tell_no_secrets(cluster: Cluster) -> None:
    app = new_app(cluster)
    app.rpc.map_error(LookupError, rpc.NotFound)
    app.rpc.map_error(ZeroDivisionError, "out_of_stock")

    @app.rpc.method
    def fail(how: str) -> object:
        match how:
            case "mapped":
                raise KeyError("A1")
            case "code":
                raise ZeroDivisionError("none left")
            case "own":
                raise rpc.FailedPrecondition("closed", details={"opens": 9}, retry_after_s=2.5)
            case "result":
                return object()
        raise ValueError("the password is hunter2")

    with calling(app, errors=[OutOfStock]) as caller:
        with pytest.raises(rpc.NotFound, match="A1"):
            caller.call("fail", how="mapped")
        with pytest.raises(OutOfStock, match="none left"):
            caller.call("fail", how="code")
        with pytest.raises(rpc.FailedPrecondition, match="closed") as own:
            caller.call("fail", how="own")
        assert (own.value.details, own.value.retry_after_s, own.value.is_retryable) == ({"opens": 9}, 2.5, False)
        with pytest.raises(rpc.Internal, match="can't be written as JSON"):
            caller.call("fail", how="result")
        with pytest.raises(rpc.Internal, match="ValueError") as internal:
            caller.call("fail", how="else")
        assert "hunter2" not in str(internal.value)
        assert internal.value.remote_traceback is None


def test_tracebacks_are_sent_if_the_service_says_so(cluster: Cluster) -> None:
    app = new_app(cluster, tracebacks=True)

    @app.rpc.method
    def fail() -> None:
        raise ValueError("because")

    with calling(app) as caller, pytest.raises(rpc.Internal, match="because") as internal:
        caller.call("fail")
    assert "in fail" in str(internal.value.remote_traceback)


def test_an_unexpected_exception_is_an_event_and_a_mapped_one_is_not(cluster: Cluster) -> None:
    app, failed = new_app(cluster), Collected[awoke.Event]()
    app.rpc.map_error(KeyError, rpc.NotFound)
    app.events.subscribe("rpc.failed", failed.add)

    @app.rpc.method
    def find(sku: str) -> None:
        raise {"unknown": KeyError, "broken": ZeroDivisionError}[sku](sku)

    with calling(app) as caller:
        with pytest.raises(rpc.NotFound):
            caller.call("find", sku="unknown")
        with pytest.raises(rpc.Internal):
            caller.call("find", sku="broken")
        (event,) = failed.wait_for(1)
    assert (event.fields["method"], type(event.fields["error"])) == ("find", ZeroDivisionError)
    assert len(failed.items) == 1


def test_only_those_who_may_call(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method(callers=["billing"])
    def charge() -> str:
        return rpc.current_call().caller

    with calling(app, name="billing") as caller:
        assert caller.call("charge") == "billing"
        with (
            rpc.Caller(app.name, cluster.bootstrap_servers, name="web", timeout_s=WITHIN_S) as other,
            pytest.raises(rpc.PermissionDenied),
        ):
            other.call("charge")


def test_a_service_tells_of_its_methods(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method(idempotent=True)
    def quote(sku: str, quantity: int = 1) -> float:
        """The price of some."""
        return 0.0

    @app.rpc.method
    def report(day: str) -> Iterator[dict[str, int]]:
        yield {}

    @app.rpc.method
    async def words():  # type: ignore[no-untyped-def]
        yield "one"

    with calling(app) as caller:
        found = {each["name"]: each for each in caller.methods()}
    assert found["quote"] == {
        "name": "quote",
        "signature": "quote(sku: str, quantity: int = ...) -> float",
        "doc": "The price of some.",
        "is_idempotent": True,
        "is_stream": False,
        "result_type": "float",
        "argument_format": None,
        "result_format": None,
    }
    assert (found["report"]["is_stream"], found["report"]["result_type"]) == (True, "dict[str, int]")
    assert (found["words"]["is_stream"], found["words"]["result_type"]) == (True, "Any")
