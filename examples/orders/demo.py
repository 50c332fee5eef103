"""The order service on brokers inside the process, with a few hundred orders: `python -m examples.orders.demo`."""

from __future__ import annotations

import logging
import os
import threading

import awoke
from awoke.testing import EmbeddedCluster, running
from examples.orders.app import app
from examples.orders.payments import BROKEN_CURRENCY, CENTS_MAX, Payments, serving

ORDERS = 300
CUSTOMERS = 20
WAIT_S = 30.0

BAD: dict[int, dict[str, object]] = {
    61: {"cents": -5},
    122: {"cents": CENTS_MAX + 1},
    183: {"currency": BROKEN_CURRENCY},
}
"""The faults of three of the orders."""


def send_orders(bootstrap_servers: str) -> None:
    """Orders with a trace, keyed by customer."""
    with awoke.Producer(bootstrap_servers) as producer:
        for number in range(1, ORDERS + 1):
            customer = f"customer-{number % CUSTOMERS}"
            order = {"id": number, "customer": customer, "cents": 10 * number, **BAD.get(number, {})}
            producer.produce("orders", order, key=customer, headers={"trace-id": f"trace-{number}"})


def read(topic: str, bootstrap_servers: str) -> list[awoke.Message[bytes | None]]:
    """Everything that a topic holds."""
    with awoke.Reader(topic, bootstrap_servers=bootstrap_servers) as reader:
        return list(reader.read_until_end(WAIT_S))


def process(payments: Payments, bootstrap_servers: str) -> None:
    """Runs the service until each order is paid or in the dead letter topic. Its stop lets running orders finish."""
    dead_lettered = threading.Semaphore(0)
    app.events.subscribe("message.dead_lettered", lambda _: dead_lettered.release())
    with running(app, bootstrap_servers=bootstrap_servers):
        is_paid = payments.wait_for(ORDERS - len(BAD), WAIT_S)
        if not (is_paid and all(dead_lettered.acquire(timeout=WAIT_S) for _ in BAD)):
            raise TimeoutError(f"not all of {ORDERS} orders were processed within {WAIT_S:.0f} s")


def main() -> None:
    """Sends orders, processes them, and shows what became of them."""
    logging.basicConfig(level=logging.ERROR)
    payments = Payments()
    with EmbeddedCluster() as cluster, serving(payments) as address:
        os.environ["PAYMENTS"] = address
        for topic in ("orders", "receipts", "orders.dead"):
            cluster.create_topic(topic, partitions=4)
        send_orders(cluster.bootstrap_servers)
        process(payments, cluster.bootstrap_servers)
        receipts = read("receipts", cluster.bootstrap_servers)
        dead = read("orders.dead", cluster.bootstrap_servers)
    assert (len(receipts), len(dead)) == (ORDERS - len(BAD), len(BAD))
    print(f"{len(receipts)} receipts, such as {receipts[0].value!r} {receipts[0].headers}")
    for message in dead:
        print(f"dead: {message.value!r}: {dict(message.headers)['awoke-error-message']!r}")


if __name__ == "__main__":
    main()
