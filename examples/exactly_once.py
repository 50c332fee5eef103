"""Money moves between accounts: each transfer is booked exactly once, both sides of it or none.

`python -m examples.exactly_once` runs it on an embedded broker.
"""

from __future__ import annotations

import threading

import msgspec

import awoke
from awoke.testing import EmbeddedCluster, running

app = awoke.App("transfers")


class Transfer(msgspec.Struct):
    """So much from one account to another."""

    source: str
    target: str
    amount: int


@app.consumer("transfers", value=Transfer, exactly_once=True, retry=awoke.Retry(attempts=3, backoff_s=(0.01, 0.1)))
class Book(awoke.Consumer):
    """Books both sides of each transfer."""

    def consume(self, batch: awoke.Batch[Transfer]) -> None:
        with self.transaction() as t:
            for message in batch:
                transfer = message.value
                t.produce("bookings", {"account": transfer.source, "amount": -transfer.amount}, key=transfer.source)
                t.produce("bookings", {"account": transfer.target, "amount": transfer.amount}, key=transfer.target)
            if batch.attempt == 1:
                raise ConnectionError("nothing has been sent, and the batch comes again")


def main() -> None:
    """Order some transfers in one transaction, and check that the bookings add up to nothing."""
    count = 100
    with EmbeddedCluster() as cluster:
        for topic in ("transfers", "bookings"):
            cluster.create_topic(topic)
        with (
            awoke.Producer(cluster.bootstrap_servers, transactional_id="orders") as producer,
            producer.transaction() as t,
        ):
            for number in range(count):
                t.produce("transfers", Transfer("alice", "bob", number))
        with (
            running(app, bootstrap_servers=cluster.bootstrap_servers),
            awoke.Reader("bookings", bootstrap_servers=cluster.bootstrap_servers) as reader,
        ):
            bookings = []
            for message in reader:
                assert message.value is not None
                bookings.append(msgspec.json.decode(message.value))
                if len(bookings) == 2 * count:
                    break
    assert sum(booking["amount"] for booking in bookings) == 0
    print(f"{count} transfers, {len(bookings)} bookings, which add up to nothing; threads: {threading.active_count()}")


if __name__ == "__main__":
    main()
