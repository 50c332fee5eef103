"""A service that is called over Kafka, and those who call it: `python -m examples.service`.

With brokers of your own: `awoke run examples.service:app`, and `awoke rpc call shop quote sku=A1 quantity=3`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import msgspec

import awoke
from awoke import rpc
from awoke.testing import EmbeddedCluster, running

PRICES = {"A1": 9.5, "B2": 20.0}
CALLS = 200

app = awoke.App("shop")
app.rpc.map_error(KeyError, rpc.NotFound)


class Money(msgspec.Struct):
    amount: float
    currency: str = "EUR"


@app.rpc.method(idempotent=True)
def quote(sku: str, quantity: int = 1) -> Money:
    """Returns the price of this quantity."""
    return Money(PRICES[sku] * quantity)


@app.rpc.method
async def reserve(sku: str, quantity: int) -> str:
    """Set some aside, as long as the caller waits for it."""
    await asyncio.sleep(0)
    return f"{quantity} x {sku}"


@app.rpc.method
def catalogue() -> Iterator[str]:
    """Everything, one by one."""
    yield from sorted(PRICES)


async def many(shop: rpc.Caller) -> list[str]:
    """A few hundred calls at once."""
    calls = (shop.acall("reserve", sku="A1", quantity=number) for number in range(CALLS))
    return list(await asyncio.gather(*calls))


def main() -> None:
    """Serve on brokers inside the process, and call."""
    logging.basicConfig()
    with (
        EmbeddedCluster() as cluster,
        running(app, bootstrap_servers=cluster.bootstrap_servers),
        rpc.Caller("shop", cluster.bootstrap_servers, timeout_s=30) as shop,
    ):
        price = shop.call("quote", sku="A1", quantity=3, returns=Money)
        print(f"3 x A1 cost {price.amount:.2f} {price.currency}")
        print(f"to be had: {', '.join(shop.stream('catalogue'))}")
        try:
            shop.call("quote", sku="C3")
        except rpc.NotFound as error:
            print(f"not found: {error}")
        try:
            shop.call("quote", sku="A1", quantity="three")
        except rpc.InvalidArgument as error:
            print(f"refused: {error}")
        reserved = asyncio.run(many(shop))
        assert reserved == [f"{number} x A1" for number in range(CALLS)]
        print(f"{len(reserved)} calls at once, each with its own answer; {shop.open_calls()} are left open")


if __name__ == "__main__":
    main()
