"""An order service: validates each order, has it paid over HTTP, and sends a receipt.

Run it on your brokers: `awoke run examples.orders.app:app --metrics-port 9404`, see README.md beside this file.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os

import pydantic

import awoke

PAYMENT_TIMEOUT_S = 5.0
PAYMENT_CONNECTIONS = 12
"""The connections that the payment service allows each process."""


class Order(pydantic.BaseModel):
    """The values of topic `orders`. Its key is the customer."""

    id: int
    customer: str
    cents: pydantic.PositiveInt
    currency: str = "EUR"


class Receipt(pydantic.BaseModel):
    """The values of topic `receipts`."""

    order: int
    payment: str
    cents: int


class PaymentRefused(Exception):
    """The payment service has refused this order, and would again."""


app = awoke.App("order-service")


@app.on(
    "orders",
    value=Order,
    output="receipts",
    forward_headers=["trace-id"],
    concurrency=awoke.by_key(16),
    jobs_max=PAYMENT_CONNECTIONS,
    retry=awoke.Retry(attempts=6, backoff_s=(0.1, 5.0), not_on=(PaymentRefused,)),
    dead_letter="orders.dead",
)
def charge(message: awoke.Message[Order]) -> Receipt:
    """Has an order paid. An order that fails is tried again, unless it is refused. Invalid ones do not come here."""
    order = message.value
    return Receipt(order=order.id, payment=pay(order), cents=order.cents)


def pay(order: Order) -> str:
    """Calls the payment service; the payment's number. The same order is never paid twice, however often it is sent."""
    address = os.environ.get("PAYMENTS", "127.0.0.1:8099")
    with contextlib.closing(http.client.HTTPConnection(address, timeout=PAYMENT_TIMEOUT_S)) as connection:
        connection.request("POST", "/payments", order.model_dump_json(), {"Idempotency-Key": str(order.id)})
        response = connection.getresponse()
        answer = json.load(response)
    if response.status == http.HTTPStatus.PAYMENT_REQUIRED:
        raise PaymentRefused(f"order {order.id}: {answer['error']}")
    if response.status != http.HTTPStatus.OK:
        raise ConnectionError(f"order {order.id}: the payment service answered {response.status}: {answer['error']}")
    return str(answer["payment"])
