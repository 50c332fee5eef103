"""Orders as Avro, results as JSON with a schema: topics with types, and a schema registry.

Run it without anything else: `python -m examples.schemas` brings its own broker and registry.
"""

from __future__ import annotations

import threading

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, EmbeddedRegistry, running


class Order(msgspec.Struct):
    """An order of a customer, who is the message's key."""

    article: str
    count: int
    note: str | None = None


class Priced(msgspec.Struct):
    """An order with its price."""

    article: str
    cents: int


PRICES = {"apple": 25, "pear": 40}

app = awoke.App("schemas", registry_register="dev")
orders = app.topic("orders", value=awoke.avro(Order), key=int)
priced = app.topic("priced", value=awoke.json_schema(Priced), key=int)
seen = threading.Event()


@app.on(orders, output=priced)
def price(message: awoke.Message[Order, int]) -> Priced:
    """Prices an order; the result keeps the order's key."""
    order = message.value
    return Priced(order.article, PRICES[order.article] * order.count)


@app.on(priced)
def show(message: awoke.Message[Priced, int]) -> None:
    """Shows a priced order."""
    print(f"customer {message.key}: {message.value.article} for {message.value.cents} cents")
    seen.set()


def main() -> None:
    """Prices one order on an embedded broker, with an embedded registry, and shows the registered schemas."""
    with EmbeddedCluster() as cluster, EmbeddedRegistry() as registry:
        for topic in (orders, priced):
            cluster.create_topic(topic)
        app.use(registry_url=registry.url)
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            app.producer.produce(orders, Order("apple", 3), key=42).wait()
            seen.wait(30)
        with awoke.SchemaRegistry(registry.url) as client:
            print("schemas:", ", ".join(client.subjects()))


if __name__ == "__main__":
    main()
