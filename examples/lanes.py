"""Many messages of one partition at once, each customer's in order: `python examples/lanes.py`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict

import awoke
from awoke.testing import EmbeddedCluster, running

ORDERS = 1_000
CUSTOMERS = 200
ANSWER_S = 0.01
WAIT_S = 30.0

app = awoke.App("lanes")
is_over = threading.Event()
by_customer: dict[bytes | None, list[int]] = defaultdict(list)  # Written by the one event loop only.


@app.on("orders", output="receipts", ordered=True, concurrency=awoke.by_key(100))
async def charge(message: awoke.Message[bytes]) -> bytes:
    """Waits for an answer, while up to 99 other customers' orders do the same."""
    await asyncio.sleep(ANSWER_S)
    by_customer[message.key].append(message.offset)
    if sum(map(len, by_customer.values())) == ORDERS:
        is_over.set()
    return message.value


def main() -> None:
    """Charge a thousand orders of one partition; the receipts come in the order of the orders."""
    logging.basicConfig()
    with EmbeddedCluster() as cluster:
        for topic in ("orders", "receipts"):
            cluster.create_topic(topic)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            for number in range(ORDERS):
                producer.produce("orders", b"%d" % number, key=b"customer-%d" % (number % CUSTOMERS))
        began_s = time.monotonic()
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            if not is_over.wait(WAIT_S):
                raise TimeoutError(f"not all of {ORDERS} orders were charged within {WAIT_S:.0f} s")
            seconds = time.monotonic() - began_s
        with awoke.Reader("receipts", bootstrap_servers=cluster.bootstrap_servers) as reader:
            receipts = [message.value for message in reader.read_until_end(WAIT_S)]
    assert all(offsets == sorted(offsets) for offsets in by_customer.values())
    assert receipts == [b"%d" % number for number in range(ORDERS)]
    print(
        f"{ORDERS} orders of one partition in {seconds:.1f} s instead of {ORDERS * ANSWER_S:.0f} s, receipts in order"
    )


if __name__ == "__main__":
    main()
