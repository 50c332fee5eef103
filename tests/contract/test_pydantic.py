"""Pydantic models as values, results, arguments of remote methods and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import pytest

import awoke
from awoke import rpc
from awoke.payloads import dead_letter
from awoke.testing import EmbeddedCluster, Runs, running
from tests.contract.test_consume import new_app, send
from tests.contract.test_recovery import letters
from tests.support.clusters import Cluster, MockCluster
from tests.support.waiting import Collected


@pytest.fixture(params=["mock"])
def cluster(mock_cluster: MockCluster) -> Cluster:
    """Embedded brokers alone: real ones do here as they do in other files."""
    return mock_cluster


CreateTopic = Callable[..., str]


class Order(pydantic.BaseModel):
    """A value that comes in."""

    id: int
    quantity: pydantic.PositiveInt = 1


class Invoice(pydantic.BaseModel):
    """A value that goes out."""

    order: Order
    total: float = pydantic.Field(alias="totalPrice")


def invoice(order: Order) -> Invoice:
    return Invoice(order=order, totalPrice=9.5 * order.quantity)


@pytest.mark.parametrize("kind", ["plain", "async", "lanes", "exactly once"])
def test_a_route_reads_and_sends_models(cluster: Cluster, topic: CreateTopic, kind: str, awoke_run: Runs) -> None:
    name, out, app, seen, sent = topic(), topic("out"), new_app(cluster), Collected[Order](), Collected[bytes]()
    options: dict[str, Any] = {"lanes": {"concurrency": awoke.by_key(4)}, "exactly once": {"exactly_once": True}}

    def bill(message: awoke.Message[Order]) -> Invoice:
        seen.add(message.value)
        return invoice(message.value)

    async def bill_async(message: awoke.Message[Order]) -> Invoice:
        return bill(message)

    app.on(name, output=out, **options.get(kind, {}))(bill_async if kind == "async" else bill)
    app.on(out)(lambda message: sent.add(message.value))
    send(cluster, name, [Order(id=1, quantity=2), b'{"id": "2"}'], key=b"key")
    awoke_run(app).idle()
    assert seen.items == [Order(id=1, quantity=2), Order(id=2)]
    assert sent.items == [
        b'{"order":{"id":1,"quantity":2},"totalPrice":19.0}',
        b'{"order":{"id":2,"quantity":1},"totalPrice":9.5}',
    ]


def test_a_class_reads_models_and_tombstones(cluster: Cluster, topic: CreateTopic, awoke_run: Runs) -> None:
    name, app, seen = topic(), new_app(cluster), Collected[Order | None]()

    @app.consumer(name, value=Order | None)
    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Order | None]) -> None:
            for order in batch.values():
                seen.add(order)

    send(cluster, name, [Order(id=1), None])
    awoke_run(app).idle()
    assert seen.items == [Order(id=1), None]


def test_a_value_that_is_no_model_is_a_dead_letter_at_once(
    cluster: Cluster, topic: CreateTopic, awoke_run: Runs
) -> None:
    name, dead, app, seen = topic(), topic("dead"), new_app(cluster), Collected[int]()

    @app.on(name, value=Order, dead_letter=dead)
    def handle(message: awoke.Message[Order]) -> None:
        seen.add(message.value.id)

    send(cluster, name, [Order(id=1), b'{"id": 2, "quantity": -77}', None, Order(id=4)])
    probe = awoke_run(app)
    probe.idle()
    assert seen.items == [1, 4]
    assert [each.offset for each in probe.failures] == [each.offset for each in probe.dead_letters] == [1, 2]
    origins = [dead_letter.origin(letter) for letter in letters(cluster, dead)]
    texts = [origin.error_text for origin in origins if origin is not None and origin.attempts == 1]
    assert len(texts) == 2
    assert "greater than 0 - at `$.quantity`" in texts[0]
    assert "-77" not in texts[0]
    assert "is a tombstone" in texts[1]


def test_remote_methods_take_and_give_models() -> None:
    app = awoke.App("shop")

    @app.rpc.method
    def bill(order: Order, times: int = 1) -> Invoice:
        return invoice(order.model_copy(update={"quantity": order.quantity * times}))

    @app.rpc.method
    async def bill_all(orders: list[Order]) -> list[Invoice]:
        return [invoice(order) for order in orders]

    @app.rpc.method
    def bill_each(orders: list[Order]) -> Iterator[Invoice]:
        yield from map(invoice, orders)

    with EmbeddedCluster() as cluster:
        brokers = cluster.bootstrap_servers
        with running(app, bootstrap_servers=brokers), rpc.Caller("shop", brokers, timeout_s=30) as shop:
            order = Order(id=1, quantity=2)
            expected = invoice(order)
            assert shop.call("bill", order=order, returns=Invoice) == expected
            assert shop.call("bill", order, 2, returns=Invoice) == invoice(Order(id=1, quantity=4))
            assert shop.call("bill", order={"id": 1, "quantity": 2}) == {
                "order": {"id": 1, "quantity": 2},
                "totalPrice": 19.0,
            }
            assert shop.call("bill_all", orders=[order], returns=list[Invoice]) == [expected]
            assert list(shop.stream("bill_each", orders=[order, order], returns=Invoice)) == [expected] * 2
            with pytest.raises(rpc.InvalidArgument, match=r"greater than 0 - at `\$\.order\.quantity`"):
                shop.call("bill", order={"id": 1, "quantity": 0})
            with pytest.raises(awoke.DecodeError, match=r"Field required - at `\$\.id`"):
                shop.call("bill", order=order, returns=Order)
