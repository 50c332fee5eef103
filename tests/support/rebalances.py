"""Rebalances in a loop: a member that stays while another one joins and leaves, with messages flowing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import awoke
from awoke.declare.consumer import Stopping
from awoke.testing import running
from tests.support.waiting import Collected, wait_until

KAFKA: dict[str, str | int] = {
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 100,
    "partition.assignment.strategy": "cooperative-sticky",
}
PARTITIONS = 4


class Rebalances:
    """An app that stays, with a thread and a buffer for each partition, and one that comes and goes."""

    def __init__(self, bootstrap_servers: str, topic: str, group: str) -> None:
        self._bootstrap_servers, self._topic, self._group = bootstrap_servers, topic, group
        self._seen = [bytearray() for _ in range(PARTITIONS)]
        """The sightings of each message, by partition and offset: a byte each, so that memory shows awoke's own use."""
        self._lock = threading.Lock()
        self._changes: Collected[awoke.Event] = Collected()
        self._owned: Collected[int] = Collected()
        """One for each background thread of the member that stays, minus one for each that has ended."""

    def run(self, rebalances: int, on_progress: Callable[[int], object] = lambda done: None) -> int:
        """Waits for `rebalances` of the member that stays; returns the number of messages sent meanwhile."""
        stays = self._app("stays", self._owned)
        for name in ("partitions.assigned", "partitions.revoked"):
            stays.events.subscribe(name, self._changes.add)
        stop, sent = threading.Event(), [0]
        sender = threading.Thread(target=self._send, args=(stop, sent))
        with running(stays):
            self._changes.wait_for(1)
            sender.start()
            try:
                done = 0
                while done < rebalances:
                    # A join takes partitions from the one that stays, a leave gives them back: two rebalances.
                    before = self._count("partitions.revoked"), self._count("partitions.assigned")
                    comes, given = self._app("comes", Collected[int]()), Collected[awoke.Event]()
                    comes.events.subscribe("partitions.assigned", given.add)
                    with running(comes):
                        self._wait_for("partitions.revoked", before[0])
                        if done % 4 == 0:  # Every other time it goes before it has got anything.
                            given.wait_until(lambda events: _with_partitions(events, "partitions.assigned") > 0)
                    self._wait_for("partitions.assigned", before[1])
                    self._owned.wait_until(lambda changes: sum(changes) == PARTITIONS)
                    done += 2
                    on_progress(done)
            finally:
                stop.set()
                sender.join()
            self._wait_until_seen(sent[0])
        return sent[0]

    def lost_and_repeated(self, sent: int) -> tuple[int, int]:
        """Messages that were never seen, and times that one was seen again."""
        with self._lock:
            distinct = self._distinct()
            return sent - distinct, sum(sum(seen) for seen in self._seen) - distinct

    def _distinct(self) -> int:
        return sum(len(seen) - seen.count(0) for seen in self._seen)

    def _app(self, name: str, owned: Collected[int]) -> awoke.App:
        app = awoke.App(
            f"{self._group}-{name}",
            group=self._group,
            bootstrap_servers=self._bootstrap_servers,
            kafka=KAFKA,
            workers=2,
        )

        def wait(stopping: Stopping) -> None:
            owned.add(1)
            stopping.wait()
            owned.add(-1)

        @app.consumer(self._topic, batch=awoke.Batching(max_messages=10))
        class Owner(awoke.Consumer):
            def assigned(consumer) -> None:  # noqa: N805
                consumer.background(wait, consumer.stopping)

            def consume(consumer, batch: awoke.Batch[bytes]) -> None:  # noqa: N805
                with self._lock:
                    for message in batch:
                        seen = self._seen[message.partition]
                        if len(seen) <= message.offset:
                            seen.extend(bytes(message.offset + 1_000 - len(seen)))
                        seen[message.offset] += 1

        return app

    def _send(self, stop: threading.Event, sent: list[int]) -> None:
        with awoke.Producer(self._bootstrap_servers) as producer:
            while not stop.wait(0.005):
                awoke.wait_all([producer.produce(self._topic, b"value") for _ in range(2)], 60)
                sent[0] += 2

    def _count(self, name: str) -> int:
        return _with_partitions(self._changes.items, name)

    def _wait_for(self, name: str, more_than: int) -> None:
        self._changes.wait_until(lambda events: _with_partitions(events, name) > more_than, 60)

    def _wait_until_seen(self, count: int, within_s: float = 60.0) -> None:
        def are_seen() -> bool:
            with self._lock:
                return self._distinct() >= count

        wait_until(are_seen, f"{count} messages came", within_s, every_s=0.02)


def _with_partitions(events: Iterable[awoke.Event], name: str) -> int:
    return sum(event.name == name and bool(event.fields["partitions"]) for event in events)
