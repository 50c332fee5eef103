"""Tests by FastStream's `TestKafkaBroker`, one for each question.

Messages go to the handlers at once, without brokers."""

from __future__ import annotations

import os

import pytest
from faststream.confluent import KafkaBroker, TestKafkaBroker  # type: ignore[import-not-found]
from pydantic import BaseModel


class Order(BaseModel):
    id: int
    total: float


async def test_a_handler_runs_without_brokers() -> None:
    broker = KafkaBroker()

    @broker.subscriber("orders")
    async def charge(order: Order) -> str:
        return f"bill of {order.id}"

    async with TestKafkaBroker(broker):
        assert await charge(Order(id=1, total=2.0)) == "bill of 1"


async def test_an_exception_fails_the_test() -> None:
    broker = KafkaBroker()

    @broker.subscriber("orders")
    async def charge(body: str) -> None:
        raise RuntimeError("no card")

    async with TestKafkaBroker(broker):
        with pytest.raises(RuntimeError, match="no card"):
            await broker.publish("an order", "orders")


async def test_calls_are_recorded() -> None:
    broker = KafkaBroker()

    @broker.subscriber("orders")
    async def charge(body: str) -> None: ...

    async with TestKafkaBroker(broker):
        await broker.publish("an order", "orders")
        charge.mock.assert_called_once_with("an order")


async def test_a_result_is_seen_on_its_topic() -> None:
    broker = KafkaBroker()

    @broker.subscriber("orders")
    @broker.publisher("bills")
    async def charge(body: str) -> str:
        return f"bill of {body}"

    @broker.subscriber("bills")
    async def bills(body: str) -> None: ...

    async with TestKafkaBroker(broker):
        await broker.publish("an order", "orders")
        bills.mock.assert_called_once_with("bill of an order")


async def test_a_wrong_value_is_an_error() -> None:
    broker = KafkaBroker()

    @broker.subscriber("orders")
    async def charge(order: Order) -> None: ...

    async with TestKafkaBroker(broker):
        with pytest.raises(ValueError, match="valid integer"):
            await broker.publish({"id": "x", "total": 1.0}, "orders")


async def test_a_request_is_answered() -> None:
    broker = KafkaBroker()

    @broker.subscriber("quotes")
    async def quote(body: str) -> str:
        return f"price of {body}"

    async with TestKafkaBroker(broker):
        reply = await broker.request("a lamp", "quotes", timeout=3)
        assert await reply.decode() == "price of a lamp"


@pytest.mark.skipif("BENCH_BROKERS" not in os.environ, reason="no brokers were given")
async def test_it_runs_on_real_brokers() -> None:
    broker = KafkaBroker(os.environ["BENCH_BROKERS"])

    @broker.subscriber(os.environ["BENCH_TOPIC"], auto_offset_reset="earliest", group_id="bench-testing")
    async def charge(body: str) -> None: ...

    async with TestKafkaBroker(broker, with_real=True):
        await broker.publish("an order", os.environ["BENCH_TOPIC"])
        await charge.wait_call(timeout=30)
        charge.mock.assert_called_once_with("an order")
