"""Topics that the app declares: partitions, replication and settings stand beside the types, in code.

Run it without anything else: `python -m examples.declared_topics` brings its own broker. On a cluster,
`awoke topics plan examples.declared_topics:app` shows how its topics differ, and `awoke topics apply` changes them.
"""

from __future__ import annotations

import threading

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running


class Order(msgspec.Struct):
    """An order of a customer, who is the message's key."""

    article: str
    count: int


DAY_MS = 24 * 60 * 60 * 1_000

app = awoke.App("declared")
orders = app.topic("orders", value=Order, key=str, partitions=12, replication=3, config={"retention.ms": 7 * DAY_MS})
stock = app.topic("stock", value=Order, key=str, partitions=6, replication=3, config={"cleanup.policy": "compact"})
seen = threading.Event()


@app.on(orders, output=stock)
def reserve(message: awoke.Message[Order, str]) -> Order:
    """Sends the order on as a reservation."""
    return message.value


@app.on(stock)
def show(message: awoke.Message[Order, str]) -> None:
    """Shows a reservation."""
    print(f"{message.key} has {message.value.count} of {message.value.article}, in partition {message.partition}")
    seen.set()


def main() -> None:
    """Shows the declarations, and reserves one order on an embedded broker that has the declared partitions."""
    with EmbeddedCluster() as cluster:
        for topic in app.topics.values():
            print(f"{topic}: {topic.partitions} partitions, {topic.replication} replicas, {topic.config}")
            cluster.create_topic(topic)
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            app.producer.produce(orders, Order("apple", 3), key="ada").wait()
            seen.wait(30)


if __name__ == "__main__":
    main()
