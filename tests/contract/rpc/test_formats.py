"""Arguments and results in formats: each kind of call and of method, a registry that is away, and wrong bytes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Protocol

import attrs
import msgspec
import pydantic
import pytest

import awoke
from awoke import rpc
from awoke.payloads.registry.schemas import Schemas
from awoke.testing import EmbeddedRegistry, running
from tests.support.clusters import Cluster, MockCluster, unique
from tests.support.protobuf_classes import Line
from tests.support.protobuf_classes import Order as OrderPb
from tests.support.services import WITHIN_S, calling
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


KEYS = {"2026": b"k" * 32}


class Order(msgspec.Struct):
    id: int


class Price(msgspec.Struct):
    amount: float


@dataclasses.dataclass
class DataOrder:
    id: int


@attrs.define
class AttrsOrder:
    id: int


class ModelOrder(pydantic.BaseModel):
    id: int = pydantic.Field(alias="orderId")


def encrypted(kind: Any) -> awoke.Format:
    return awoke.encrypted(kind, keys=KEYS, current="2026")


PAIRS = {
    "avro": (awoke.avro(Order), awoke.avro(Price)),
    "avro by header": (awoke.avro(Order, wire="header"), awoke.avro(Price, wire="header")),
    "json schema": (awoke.json_schema(Order), awoke.json_schema(Price)),
    "messagepack": (awoke.msgpack(Order), awoke.msgpack(Price)),
    "encrypted avro": (encrypted(awoke.avro(Order)), encrypted(awoke.avro(Price))),
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRegistry]:
    """A registry that the settings of callers name, too."""
    with EmbeddedRegistry() as registry:
        monkeypatch.setenv("AWOKE_REGISTRY_URL", registry.url)
        monkeypatch.setenv("AWOKE_REGISTRY_REGISTER", "dev")
        monkeypatch.setenv("AWOKE_REGISTRY_TIMEOUT_S", "2")
        yield registry


def new_app(cluster: Cluster, **options: Any) -> awoke.App:
    app = awoke.App(unique("shop"), bootstrap_servers=cluster.bootstrap_servers)
    app.rpc.options(**options)
    return app


@pytest.mark.parametrize("kind", PAIRS)
def test_every_kind_of_call_takes_formats(cluster: Cluster, registry: EmbeddedRegistry, kind: str) -> None:
    argument, returns = PAIRS[kind]
    app, cast = new_app(cluster), Collected[int]()

    @app.rpc.method(argument=argument, returns=returns)
    def price(order: Order) -> Price:
        return Price(order.id / 2)

    @app.rpc.method(argument=argument, returns=returns)
    async def aprices(order: Order) -> AsyncIterator[Price]:
        for number in range(order.id):
            yield Price(number)

    @app.rpc.method(argument=argument)
    def note(order: Order) -> None:
        cast.add(order.id)

    async def on_loop(caller: rpc.Caller) -> list[Any]:
        found = [await caller.acall("price", Order(5), argument=argument, returns=returns)]
        return [
            *found,
            *[each async for each in caller.stream("aprices", Order(2), argument=argument, returns=returns)],
        ]

    with calling(app) as caller:
        assert caller.call("price", Order(7), argument=argument, returns=returns) == Price(3.5)
        assert caller.call("price", order=Order(8), argument=argument, returns=returns) == Price(4)
        assert list(caller.stream("aprices", Order(3), argument=argument, returns=returns)) == [*map(Price, range(3))]
        assert caller.submit("price", Order(9), argument=argument, returns=returns).wait(WITHIN_S) == Price(4.5)
        assert asyncio.run(on_loop(caller)) == [Price(2.5), Price(0), Price(1)]
        caller.cast("note", Order(4), argument=argument).wait(WITHIN_S)
        assert cast.wait_for(1) == [4]
        gathered = caller.scatter("price", Order(2), argument=argument, returns=returns, replies=1)
        assert (gathered.results, gathered.errors) == ([Price(1)], [])


def test_a_first_call_on_an_event_loop_loads_its_schemas_beside_the_loop(
    cluster: Cluster, registry: EmbeddedRegistry
) -> None:
    app = new_app(cluster)
    argument, returns = PAIRS["avro"]

    @app.rpc.method(argument=argument, returns=returns)
    async def price(order: Order) -> Price:
        return Price(order.id)

    async def ask() -> list[Any]:
        async with rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
            first = await caller.acall("price", Order(1), argument=argument, returns=returns)
            return [first, await caller.submit("price", Order(2), argument=argument, returns=returns)]

    async def ask_later() -> Any:
        async with rpc.Caller(app.name, cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
            with pytest.raises(awoke.registry.SchemaNeeded):
                caller.submit("price", Order(2), argument=argument)
            return await caller.ascatter("price", Order(3), argument=argument, returns=returns, replies=1)

    with running(app):
        assert asyncio.run(ask()) == [Price(1), Price(2)]
        assert asyncio.run(ask_later()).results == [Price(3)]


class Shop(Protocol):
    """The methods, as the service and its callers share them."""

    def price(self, order: Annotated[Order, PAIRS["avro"][0]]) -> Annotated[Price, PAIRS["avro"][1]]: ...
    def lines(self, order: OrderPb) -> Iterator[Line]: ...
    async def count(self, order: OrderPb) -> int: ...


def test_annotations_of_methods_and_of_typed_clients_name_formats(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app = new_app(cluster)

    @app.rpc.method
    def price(order: Annotated[Order, PAIRS["avro"][0]]) -> Annotated[Price, PAIRS["avro"][1]]:
        return Price(order.id)

    @app.rpc.method
    def lines(order: OrderPb) -> Iterator[Line]:
        yield from order.lines

    @app.rpc.method
    async def count(order: OrderPb) -> int:
        return len(order.lines)

    order = OrderPb(id=7, lines=[Line(sku="a"), Line()])
    with calling(app) as caller:
        shop = caller.client(Shop)
        assert (shop.price(Order(3)), shop.price(order=Order(4))) == (Price(3), Price(4))
        assert list(shop.lines(order)) == list(order.lines)
        assert asyncio.run(shop.count(order=order)) == 2
        assert list(caller.stream("lines", order, returns=Line)) == list(order.lines)
        assert caller.call("count", OrderPb()) == 0, "a message without a field has no bytes"
        found = {each["name"]: each for each in caller.methods()}
    assert found["price"]["argument_format"] == found["price"]["result_format"] == "Avro"
    assert (found["count"]["argument_format"], found["count"]["result_format"]) == ("Protobuf", None)
    assert "Annotated" not in found["price"]["signature"]
    assert found["lines"]["result_type"].endswith("Line")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ModelOrder, ModelOrder(orderId=7)),
        (DataOrder, DataOrder(7)),
        (AttrsOrder, AttrsOrder(7)),
        (OrderPb, OrderPb(id=7)),
    ],
    ids=["pydantic", "dataclass", "attrs", "protobuf"],
)
def test_types_of_other_libraries_need_no_format(cluster: Cluster, kind: Any, value: Any) -> None:
    app = new_app(cluster)

    def same(order: Any) -> Any:
        assert type(order) is kind
        return order

    same.__annotations__ = {"order": kind, "return": kind}
    app.rpc.method(same)
    with calling(app) as caller:
        assert caller.call("same", value, returns=kind) == value


def test_none_is_sent_in_a_format_whose_type_takes_it(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app, form = new_app(cluster), awoke.avro(Order | None)

    @app.rpc.method(argument=form, returns=form)
    def same(order: Order | None) -> Order | None:
        return order

    @app.rpc.method(returns=awoke.avro(Price))
    def price() -> Price:
        return None  # type: ignore[return-value]

    with calling(app) as caller:
        assert [caller.call("same", each, argument=form, returns=form) for each in (None, Order(1))] == [None, Order(1)]
        with pytest.raises(awoke.EncodeError, match="None is no Avro"):
            caller.call("same", None, argument=awoke.avro(Order))
        with pytest.raises(rpc.Internal, match="None is no Avro"):
            caller.call("price", returns=awoke.avro(Price))


def test_wrong_bytes_are_answered_with_an_error_and_the_next_call_is_executed(
    cluster: Cluster, registry: EmbeddedRegistry
) -> None:
    app, executed = new_app(cluster), Collected[int]()
    argument, returns = PAIRS["avro"]

    @app.rpc.method(argument=argument, returns=returns)
    def price(order: Order) -> Any:
        executed.add(order.id)
        return Price(order.id) if order.id else "no price"

    with calling(app, retries=rpc.Retries(attempts=1)) as caller:
        for words, wrong in (
            ("not with 00 and the id of a schema", {"argument": awoke.msgpack(Order)}),
            ("not with 00 and the id of a schema", {}),
            ("not encrypted|bytes begin|does not have it", {"argument": encrypted(Order)}),
        ):
            with pytest.raises(rpc.InvalidArgument, match=words):
                caller.call("price", Order(1), **wrong)
        with pytest.raises(rpc.Internal, match="can't be written as Avro"):
            caller.call("price", Order(0), argument=argument)
        with pytest.raises(awoke.DecodeError, match=r"price can't be read as JSON"):
            caller.call("price", Order(2), argument=argument)
        with pytest.raises(
            awoke.DecodeError, match=r"price: it can't be read as Encrypted: the value is not encrypted"
        ):
            caller.call("price", Order(3), argument=argument, returns=encrypted(Price))
        assert caller.call("price", Order(4), argument=argument, returns=returns) == Price(4)
    assert executed.items == [0, 2, 3, 4]


def test_an_id_that_the_registry_does_not_have_is_a_wrong_argument(
    cluster: Cluster, registry: EmbeddedRegistry
) -> None:
    app = new_app(cluster)

    @app.rpc.method(argument=PAIRS["avro"][0])
    def price(order: Order) -> int:
        return order.id

    with EmbeddedRegistry() as other, calling(app) as caller:
        schemas = Schemas(lambda: awoke.SchemaRegistry(other.url), lambda: "always")
        with awoke.SchemaRegistry(other.url) as client:
            for number in range(3):
                client.register(
                    unique("other"), awoke.registry.Schema(f'{{"type":"fixed","name":"F","size":{number}}}')
                )
        options: Any = {"schemas": schemas, "timeout_s": WITHIN_S}
        words = r"it can't be read as Avro: .*Schema 4 not found"
        with (
            rpc.Caller(app.name, cluster.bootstrap_servers, **options) as foreign,
            pytest.raises(rpc.InvalidArgument, match=words),
        ):
            foreign.call("price", Order(1), argument=PAIRS["avro"][0])
        schemas.close()
        assert caller.call("price", Order(2), argument=PAIRS["avro"][0]) == 2


@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_calls_are_rejected_and_made_again_while_the_registry_of_the_responder_is_away(
    cluster: Cluster, registry: EmbeddedRegistry, is_async: bool
) -> None:
    app, waited, executed = new_app(cluster), Collected[Any](), Collected[int]()
    argument, returns = PAIRS["avro"]

    def price(order: Order) -> Price:
        executed.add(order.id)
        return Price(order.id)

    async def aprice(order: Order) -> Price:
        return price(order)

    @app.rpc.method
    def ping() -> str:
        return "pong"

    app.rpc.method(name="price", argument=argument, returns=returns)(aprice if is_async else price)
    app.events.subscribe("registry.waited", waited.add)
    schemas = Schemas(lambda: awoke.SchemaRegistry(registry.url), lambda: "always")
    with calling(app, schemas=schemas) as caller:
        assert caller.call("price", Order(1), argument=argument, returns=returns) == Price(1)
    registry.set_up(False)  # The caller has its schemas, and the app, which starts again, has none.
    with calling(app, schemas=schemas, retries=rpc.Retries(attempts=1)) as caller:
        with pytest.raises(rpc.Unavailable, match="price: the responder can't ask the schema registry now") as found:
            caller.call("price", Order(2), argument=argument, returns=returns)
        assert (found.value.is_rejected, found.value.is_retryable) == (True, True)
        assert 0 < (found.value.retry_after_s or 0) <= 2
        assert waited.wait_for(1)[0].handler == "price"
        assert caller.call("ping") == "pong", "other methods are executed meanwhile"
    again = rpc.Retries(attempts=100, budget=100)
    with calling(app, schemas=schemas, retries=again) as caller, ThreadPoolExecutor() as pool:
        call = pool.submit(caller.call, "price", Order(3), argument=argument, returns=returns)
        waited.wait_for(2)
        registry.set_up(True)
        assert call.result(WITHIN_S) == Price(3)
    schemas.close()
    assert executed.items == [1, 3]


def test_a_result_in_a_format_is_committed_with_the_offset(real_cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app, argument, returns = new_app(real_cluster, mode="exactly_once"), encrypted(awoke.avro(Order)), PAIRS["avro"][1]
    out = unique("out")
    real_cluster.create_topic(out)

    @app.rpc.method(argument=argument, returns=returns, idempotent=True)
    def price(order: Order) -> Price:
        rpc.current_call().transaction_entry.produce(out, str(order.id))
        return Price(order.id)

    with calling(app) as caller:
        for _ in range(2):
            key: Any = {"idempotency_key": "one"}
            assert caller.call("price", Order(5), argument=argument, returns=returns, **key) == Price(5)
        with pytest.raises(rpc.InvalidArgument):
            caller.call("price", Order(6))
    with awoke.Reader(out, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        assert [message.value for message in reader.read_until_end(WITHIN_S)] == [b"5"]


def test_signed_calls_cover_the_headers_of_a_format(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app, (argument, returns) = new_app(cluster, secret=b"s" * 32), PAIRS["avro by header"]

    @app.rpc.method(argument=argument, returns=returns)
    def price(order: Order) -> Price:
        assert dict(rpc.current_call().headers) == {"tenant": b"7"}, "the headers are the caller's own"
        return Price(order.id)

    with calling(app, secret=b"s" * 32) as caller:
        options: Any = {"argument": argument, "returns": returns, "headers": {"tenant": "7"}}
        assert caller.call("price", Order(5), **options) == Price(5)


def test_the_schemas_of_a_method_have_subjects_of_their_own(cluster: Cluster, registry: EmbeddedRegistry) -> None:
    app, (argument, returns) = new_app(cluster), PAIRS["json schema"]

    @app.rpc.method(argument=argument, returns=returns)
    def price(order: Order) -> Price:
        return Price(order.id)

    with calling(app) as caller, awoke.SchemaRegistry(registry.url) as client:
        caller.call("price", Order(5), argument=argument, returns=returns)
        assert client.subjects() == [f"{app.name}.rpc.calls.price-value", f"{app.name}.rpc.replies.price-value"]


def test_messages_of_protobuf_with_a_registry_and_events_are_arguments_and_results(
    cluster: Cluster, registry: EmbeddedRegistry
) -> None:
    app, lines, events = new_app(cluster), awoke.protobuf(Line), awoke.cloudevents(awoke.avro(Order))

    @app.rpc.method(argument=lines, returns=lines)
    def same(line: Line) -> Line:
        return line

    @app.rpc.method(argument=events, returns=events)
    async def echo(event: awoke.CloudEvent[Order]) -> awoke.CloudEvent[Order]:
        return awoke.CloudEvent(data=event.data, type=f"{event.type}.done", source="/shop", id=event.id)

    event = awoke.CloudEvent(data=Order(7), type="order.placed", source="/web")
    with calling(app) as caller, awoke.SchemaRegistry(registry.url) as client:
        assert caller.call("same", Line(sku="a"), argument=lines, returns=lines) == Line(sku="a")
        found = caller.call("echo", event, argument=events, returns=events)
        assert (found.data, found.type, found.id) == (Order(7), "order.placed.done", event.id)
        assert f"{app.name}.rpc.calls.same-value" in client.subjects()


def test_an_app_whose_methods_need_a_registry_does_not_start_without_one(cluster: Cluster) -> None:
    app = new_app(cluster)
    app.rpc.method(name="price", argument=PAIRS["avro"][0])(lambda order: None)
    with pytest.raises(awoke.ConfigError, match="registry_url"), running(app):
        pass
