"""`awoke rpc call` for methods whose argument or result is in a format of a schema registry."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads.formats.avro_types import schema_of as avro_schema_of
from awoke.payloads.formats.json_schema import schema_of as json_schema_of
from awoke.payloads.formats.protobuf import own_schema
from awoke.payloads.registry import Reference, Schema
from awoke.testing import EmbeddedRegistry, running
from tests.support.clusters import Cluster, MockCluster
from tests.support.command_line import awoke_says
from tests.support.protobuf_classes import SHOP_TEXT, Amount, Line
from tests.support.protobuf_classes import Order as OrderPb
from tests.support.services import calling, new_app


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


pytestmark = pytest.mark.usefixtures("registry")


class Order(msgspec.Struct):
    id: int
    at: datetime.datetime | None = None
    seal: bytes = b""
    key: str = ""


class JsonOrder(msgspec.Struct):
    id: int


class Price(msgspec.Struct):
    amount: float
    seal: bytes = b""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRegistry]:
    """A registry that the settings of apps and commands name."""
    with EmbeddedRegistry() as registry:
        monkeypatch.setenv("AWOKE_REGISTRY_URL", registry.url)
        monkeypatch.setenv("AWOKE_REGISTRY_REGISTER", "dev")
        yield registry


def register(registry: EmbeddedRegistry, app: awoke.App, method: str, schema: Schema) -> None:
    """Registers the schema of the argument of a method."""
    with awoke.SchemaRegistry(registry.url) as client:
        client.register(f"{app.name}.rpc.calls.{method}-value", schema)


def text(schema: Any) -> str:
    """Returns a schema as the registry takes it."""
    return msgspec.json.encode(schema).decode()


def say(app: awoke.App, *words: str, **options: Any) -> str:
    """Runs `awoke rpc call` for a method of this app."""
    brokers = str(app.settings.bootstrap_servers)
    return awoke_says("rpc", "call", app.name, *words, "--timeout-s", "30", "-b", brokers, **options)


def test_argument_and_result_are_in_avro(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app = new_app(cluster)

    @app.rpc.method(argument=awoke.avro(Order), returns=awoke.avro(Price))
    def price(order: Order) -> Price:
        return Price(order.id / 2, order.seal + order.key.encode() + (b"!" if order.at is not None else b""))

    @app.rpc.method(argument=awoke.avro(Order))
    def ids(order: Order) -> Iterator[int]:
        yield from range(order.id)

    @app.rpc.method(returns=awoke.avro(Price, wire="header"))
    def flat(amount: float) -> Iterator[Price]:
        yield from (Price(amount), Price(amount + 1))

    for method in ("price", "ids"):
        register(registry, app, method, Schema(text(avro_schema_of(Order))))
    with calling(app):
        assert say(app, "price", "id=7", "seal=/w==") == '{"amount":3.5,"seal":"/w=="}'
        words = ("id=7", "seal=", "at=2026-01-01T00:00:00Z", "key=a", "--registry-url", registry.url)
        assert say(app, "price", *words, env={"AWOKE_REGISTRY_URL": ""}) == '{"amount":3.5,"seal":"YSE="}'
        assert say(app, "ids", "id=2", "seal=") == "0\n1"
        assert say(app, "flat", "amount=1.5") == '{"amount":1.5,"seal":""}\n{"amount":2.5,"seal":""}'


def test_argument_and_result_are_in_json_schema(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app = new_app(cluster)

    @app.rpc.method(argument=awoke.json_schema(JsonOrder), returns=awoke.json_schema(Price))
    def price(order: JsonOrder) -> Price:
        return Price(order.id / 2)

    register(registry, app, "price", Schema(text(json_schema_of(JsonOrder)), "JSON"))
    with calling(app):
        assert say(app, "price", "id=7") == '{"amount":3.5,"seal":""}'
        assert "it breaks the rule" in say(app, "price", "id=seven", code=1)


def test_argument_and_result_are_in_protobuf(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app = new_app(cluster)

    @app.rpc.method(argument=awoke.protobuf(OrderPb), returns=awoke.protobuf(Line))
    def first(order: OrderPb) -> Line:
        return order.lines[0]

    @app.rpc.method(argument=awoke.protobuf(OrderPb))
    def count(order: OrderPb) -> int:
        return len(order.lines)

    @app.rpc.method
    def bare(order: OrderPb) -> int:
        return len(order.lines)

    with awoke.SchemaRegistry(registry.url) as client:
        client.register("money.proto", own_schema(Amount.DESCRIPTOR.file))
    reference = Reference("money.proto", "money.proto", 1)
    register(registry, app, "first", own_schema(OrderPb.DESCRIPTOR.file)._replace(references=(reference,)))
    register(registry, app, "count", Schema(SHOP_TEXT, "PROTOBUF", (reference,)))
    with calling(app):
        lines = 'lines=[{"sku": "A1"}]'
        assert say(app, "first", "id=7", lines) == '{"sku":"A1"}'
        assert "there is no field 'idd'; the fields are id" in say(app, "first", "idd=7", code=1)
        assert say(app, "count", lines) == "1"
        assert "a class without awoke.protobuf has none: call it in Python" in say(app, "bare", lines, code=1)


def test_what_is_wrong_is_one_line(
    cluster: Cluster, registry: EmbeddedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, nowhere = new_app(cluster), ("--registry-url", "http://127.0.0.1:1")

    @app.rpc.method(argument=awoke.avro(Order))
    def price(order: Order) -> float:
        return order.id / 2

    @app.rpc.method(argument=awoke.avro(Order))
    def unknown(order: Order) -> None: ...

    @app.rpc.method(argument=awoke.msgpack(Order), returns=awoke.msgpack(Price))
    def packed(order: Order) -> Price:
        return Price(order.id)

    @app.rpc.method(returns=awoke.msgpack(Price))
    def unread() -> Price:
        return Price(1)

    @app.rpc.method(returns=awoke.avro(Price))
    def flat() -> Price:
        return Price(1)

    register(registry, app, "price", Schema(text(avro_schema_of(Order))))
    fields = "the fields are id, at, seal, key; see: awoke schema show"
    cases: list[tuple[int, str, tuple[str, ...]]] = [
        (1, f"there is no field 'idd'; {fields}", ("price", "idd=7")),
        (1, "field 'id' takes long, not text", ("price", "id=seven")),
        (1, "the schema registry does not answer", ("price", "id=7", "seal=", *nowhere)),
        (1, f"the registry has no schema of '{app.name}.rpc.calls.unknown-value'", ("unknown", "id=7")),
        (1, "packed takes its argument as MessagePack, which can't be written at the shell", ("packed", "id=7")),
        (1, "is read in Python", ("unread",)),
        (1, "the schema registry does not answer", ("flat", *nowhere)),
        (1, f"; see: awoke rpc methods {app.name}", ("absent", "id=7")),
    ]
    without: list[tuple[int, str, tuple[str, ...]]] = [
        (2, "price takes its argument as Avro, by a schema of a registry: no schema registry is set", ("price",)),
        (2, "flat was executed, and its result names a schema of a registry: no schema registry is set", ("flat",)),
    ]
    with calling(app):
        for number, (code, said, words) in enumerate([*cases, *without]):
            if number == len(cases):
                monkeypatch.delenv("AWOKE_REGISTRY_URL")
            output = say(app, *words, code=code)
            assert said in output, output
            assert output.startswith("error: "), output
            # Below it, the command that prints the error's page.
            assert all(line.startswith("what to do: ") for line in output.splitlines()[1:]), output


def test_json_needs_no_registry(cluster: Cluster) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def quote(sku: str, quantity: int = 1) -> dict[str, Any]:
        return {"sku": sku, "price": quantity * 1.5}

    with running(app):
        words = ("quote", "sku=A1", "quantity=3", "--registry-url", "http://127.0.0.1:1")
        assert say(app, *words) == '{"sku": "A1", "price": 4.5}'
        assert say(app, "quote", "skuu=A1", code=1).startswith("error: invalid_argument: quote: ")
