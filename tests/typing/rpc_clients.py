"""Typed clients under mypy: a line with `type: ignore` must be an error, or mypy refuses the comment itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Protocol, assert_type

from awoke import rpc


class Orders(Protocol):
    """A protocol that a service and its callers share."""

    def quote(self, sku: str, quantity: int = 1) -> float: ...
    def lines(self, order: int) -> Iterator[str]: ...


class AsyncOrders(Protocol):
    """The same for an event loop."""

    async def quote(self, sku: str, quantity: int = 1) -> float: ...
    def lines(self, order: int) -> AsyncIterator[str]: ...


class Stock:
    """A class that a service uses itself."""

    def left(self, sku: str) -> int:
        """Counts."""
        return len(sku)


def accepted(caller: rpc.Caller) -> None:
    """Calls as declared."""
    orders = caller.client(Orders, timeout_s=2)
    assert_type(orders, Orders)
    assert_type(orders.quote("A1", quantity=3), float)
    assert_type(list(orders.lines(1)), list[str])
    assert_type(caller.client(Stock).left("A1"), int)


async def accepted_async(caller: rpc.Caller) -> None:
    """Calls as declared, on an event loop."""
    orders = caller.aclient(AsyncOrders)
    assert_type(await orders.quote("A1"), float)
    assert_type([line async for line in orders.lines(1)], list[str])
    assert_type(await rpc.Caller.open("orders", timeout_s=2.0), rpc.Caller)


async def refused(caller: rpc.Caller) -> None:
    """Calls that are not as declared."""
    orders = caller.client(Orders)
    orders.quote(1)  # type: ignore[arg-type]
    orders.quote("A1", quantity="three")  # type: ignore[arg-type]
    orders.quote()  # type: ignore[call-arg]
    orders.buy("A1")  # type: ignore[attr-defined]
    price: str = orders.quote("A1")  # type: ignore[assignment]
    await orders.quote(price)  # type: ignore[misc]
    await rpc.Caller.open("orders", timeout_ms=2)  # type: ignore[call-arg]
