"""Members with many lanes come and go under load: keys keep their order; results leave once, and in order if asked."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import WITHIN_S, Collected, wait_until, work_for

PARTITIONS = 4
KEYS = 40
ROUNDS = 4
KAFKA: dict[str, str | int] = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 100}


class Seen:
    """The messages that handlers processed, in their order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.by_key: dict[tuple[int, bytes | None], list[int]] = defaultdict(list)

    def add(self, message: awoke.Message[bytes]) -> None:
        with self._lock:
            self.by_key[(message.partition, message.key)].append(message.offset)

    def count(self) -> int:
        with self._lock:
            return sum(len(set(offsets)) for offsets in self.by_key.values())


@pytest.mark.parametrize("ordered", [False, True])
def test_rebalances_under_load(real_cluster: RealCluster, ordered: bool) -> None:
    topic, out, group = unique("lanes"), unique("out"), unique("group")
    real_cluster.create_topic(topic, PARTITIONS)
    real_cluster.create_topic(out)
    seen, changes, sent, stop = Seen(), Collected[awoke.Event](), [0], threading.Event()

    def new_app(name: str) -> awoke.App:
        app = awoke.App(name, group=group, bootstrap_servers=real_cluster.bootstrap_servers, kafka=KAFKA)
        chance = random.Random(name)

        @app.on(topic, output=out, ordered=ordered, concurrency=awoke.by_key(8))
        def handle(message: awoke.Message[bytes]) -> bytes:
            work_for(chance.random() / 200)
            seen.add(message)
            return b"%d %d" % (message.partition, message.offset)

        return app

    def send() -> None:
        chance = random.Random(1)
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            while not stop.wait(0.005):
                keys = [b"%d" % chance.randrange(KEYS) for _ in range(10)]
                awoke.wait_all([producer.produce(topic, b"value", key=key) for key in keys], 60)
                sent[0] += len(keys)

    stays = new_app("stays")
    stays.events.subscribe("partitions.assigned", changes.add)
    sender = threading.Thread(target=send)
    with running(stays):
        changes.wait_for(1)
        sender.start()
        try:
            for number in range(ROUNDS):
                comes, given = new_app(f"comes-{number}"), Collected[awoke.Event]()
                comes.events.subscribe("partitions.assigned", given.add)
                with running(comes):
                    given.wait_until(lambda events: any(event.fields["partitions"] for event in events))
                    done = seen.count()
                    wait_until_more(seen, done + 100)
        finally:
            stop.set()
            sender.join()
        wait_until_more(seen, sent[0])
    with awoke.Reader(out, bootstrap_servers=real_cluster.bootstrap_servers) as reader:
        results = [(message.value or b"").split() for message in reader.read_until_end(30)]
    by_partition: dict[int, list[int]] = defaultdict(list)
    for partition, offset in results:
        by_partition[int(partition)].append(int(offset))
    assert sum(len(offsets) for offsets in by_partition.values()) == sent[0], "each result leaves once"
    if ordered:
        assert all(offsets == sorted(offsets) for offsets in by_partition.values())
    else:
        assert all(len(set(offsets)) == len(offsets) for offsets in seen.by_key.values())
    for offsets in seen.by_key.values():
        firsts = list(dict.fromkeys(offsets))
        assert firsts == sorted(firsts)


def wait_until_more(seen: Seen, count: int) -> None:
    """Waits until `count` messages were handled."""
    wait_until(lambda: seen.count() >= count, f"{count} messages were handled", WITHIN_S, every_s=0.02)
