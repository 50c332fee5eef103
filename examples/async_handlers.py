"""An `async def` handler that awaits its produce: `python examples/async_handlers.py`."""

from __future__ import annotations

import logging
import threading

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running

ORDERS = 20
WAIT_S = 30.0


class Order(msgspec.Struct):
    """The values of topic `orders`."""

    number: int
    cents: int


class Invoice(msgspec.Struct):
    """The values of topic `invoices`."""

    order: int
    cents_with_tax: int


app = awoke.App("async-handlers")
is_all_invoiced = threading.Event()
invoiced: list[int] = []  # Written by the one event loop only.


@app.on("orders", value=Order)
async def invoice(message: awoke.Message[Order]) -> None:
    """Runs on awoke's event loop: while one partition awaits the broker, the others go on."""
    order = message.value
    bill = Invoice(order.number, order.cents * 119 // 100)
    delivery = await app.producer.produce("invoices", bill, key=message.key)
    print(f"order {order.number}: invoice at {delivery.topic}-{delivery.partition}, offset {delivery.offset}")
    invoiced.append(order.number)
    if len(invoiced) == ORDERS:
        is_all_invoiced.set()


def read_total(bootstrap_servers: str) -> int:
    """The sum of all invoices, in cents, read back from their topic."""
    with awoke.Reader("invoices", bootstrap_servers=bootstrap_servers) as reader:
        values = [message.raw_value or b"" for message in reader.read_until_end(timeout_s=WAIT_S)]
    return sum(msgspec.json.decode(value, type=Invoice).cents_with_tax for value in values)


def main() -> None:
    """Produce orders, run the app until each has its invoice, and add the invoices up."""
    logging.basicConfig()  # Without it a handler's failure is not shown.
    with EmbeddedCluster() as cluster:
        for topic in ("orders", "invoices"):
            cluster.create_topic(topic, partitions=4)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            for number in range(1, ORDERS + 1):
                producer.produce("orders", Order(number, 1_000 * number), key=f"customer-{number % 7}")
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            if not is_all_invoiced.wait(WAIT_S):
                raise TimeoutError(f"{len(invoiced)} of {ORDERS} orders were invoiced within {WAIT_S:.0f} s")
        print(f"{ORDERS} invoices, {read_total(cluster.bootstrap_servers) / 100:.2f} in total")


if __name__ == "__main__":
    main()
