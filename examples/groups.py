"""Two consumer groups in one app: one books orders, the other one audits them, and neither waits for the other.

Run it without anything else: `python -m examples.groups` brings its own broker.
"""

from __future__ import annotations

import threading

import awoke
from awoke.testing import EmbeddedCluster, running

ORDERS = 5

app = awoke.App("shop")
audited: list[int] = []
is_audited = threading.Event()
is_booked = threading.Event()


@app.on("orders", value=int)
def book(message: awoke.Message[int]) -> None:
    """Books an order, when all of them were audited: the other group does not wait for this one."""
    is_audited.wait(30)
    print(f"booked {message.value}")
    if message.value == ORDERS:
        is_booked.set()


@app.on("orders", value=int, group="shop-audit")
def audit(message: awoke.Message[int]) -> None:
    """Audits an order, in a group of its own."""
    audited.append(message.value)
    if len(audited) == ORDERS:
        print(f"audited {audited}")
        is_audited.set()


def main() -> None:
    """Sends orders, which both groups get."""
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", partitions=1)
        with running(app, bootstrap_servers=cluster.bootstrap_servers) as runner:
            for number in range(1, ORDERS + 1):
                app.producer.produce("orders", number)
            is_booked.wait(30)
            for group in runner.joining:
                print(f"group {group.group}: {len(group.partitions())} partition")


if __name__ == "__main__":
    main()
