"""A shop to be tested: orders are charged, reminders wait for an hour, payments are booked exactly once."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec

import awoke


class Order(msgspec.Struct):
    """An order of a customer."""

    id: int
    total: float


class Bank(Protocol):
    """Charges cards."""

    def charge(self, order: Order) -> str: ...


class RealBank:
    """The bank that the shop works with."""

    def charge(self, order: Order) -> str:
        """Charge the card of an order; return the receipt."""
        if order.total < 0:
            raise ValueError(f"order {order.id} has a negative total")
        return f"receipt of {order.id}"


app = awoke.App("shop")


@app.on(
    "orders",
    output="receipts",
    retry=awoke.Retry(attempts=7, backoff_s=(60.0, 1_800.0), jitter=0.0),
    dead_letter="orders.dead",
)
def charge(message: awoke.Message[Order], bank: Annotated[Bank, awoke.Depends(RealBank)]) -> str:
    """Charge an order, and send its receipt."""
    return bank.charge(message.value)


@app.on("baskets", flow=awoke.Flow(delay_s=3_600.0))
def remind(message: awoke.Message[bytes]) -> None:
    """Remind a customer of a basket, an hour after its last change."""


@app.consumer("clicks")
class Clicks(awoke.Consumer):
    """Counts the clicks of a partition, and writes the sum when the partition goes to another process."""

    def assigned(self) -> None:
        self.count = 0

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        self.count += len(batch)

    def revoked(self) -> None:
        app.producer.produce("sums", str(self.count).encode()).wait(30)


@app.on("payments", output="bookings", exactly_once=True)
def book(message: awoke.Message[bytes]) -> bytes:
    """Book a payment: its booking and its offset are one transaction."""
    return b"booked " + message.value


@app.rpc.method
def quote(sku: str, quantity: int) -> float:
    """Return a price."""
    if quantity < 1:
        raise awoke.rpc.InvalidArgument("order at least one")
    return 9.5 * quantity
