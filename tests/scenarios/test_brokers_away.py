"""Brokers are stopped and started again, one after the other, and so the group's coordinator moves: nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import awoke
from awoke.testing import running
from tests.scenarios.test_restart import committed
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected, wait_until

PARTITIONS = 3
KAFKA = {
    "heartbeat.interval.ms": 300,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 1_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
}


@pytest.fixture
def brokers() -> Iterator[RealCluster]:
    """Three brokers of this test's own."""
    cluster = RealCluster(brokers=3)
    yield cluster
    cluster.close()


def test_each_broker_is_away_for_a_while(brokers: RealCluster) -> None:
    topic, group = unique("rolling"), unique("group")
    brokers.create_topic(topic, PARTITIONS, replicas=3)
    seen: Collected[tuple[int, int]] = Collected()
    app = awoke.App(unique("app"), group=group, bootstrap_servers=brokers.bootstrap_servers, kafka=KAFKA)

    @app.on(topic)
    def see(message: awoke.Message[bytes]) -> None:
        seen.add((message.partition, message.offset))

    stop, sent = threading.Event(), [0]

    def load() -> None:
        with awoke.Producer(brokers.bootstrap_servers, kafka={**KAFKA, "enable.idempotence": True}) as producer:
            while not stop.wait(0.01):
                awoke.wait_all([producer.produce(topic, b"value") for _ in range(10)], 60)
                sent[0] += 10

    sender = threading.Thread(target=load)
    with running(app):
        sender.start()
        try:
            for broker in (1, 2, 3):
                seen.wait_for(len(seen.items) + 100, 60)
                brokers.kafka.stop_broker(broker)
                seen.wait_for(len(seen.items) + 500, 90)
                brokers.kafka.start_broker(broker)
        finally:
            stop.set()
            sender.join()
        seen.wait_until(lambda items: len(set(items)) >= sent[0], 60)
        # Messages that were seen before a rebalance may be read again: a stop before that would leave them.
        wait_until(lambda: committed(brokers, group) == sent[0], "all messages are committed", 60)
    for partition in range(PARTITIONS):
        offsets = [offset for at, offset in seen.items if at == partition]
        assert set(offsets) == set(range(max(offsets) + 1))
        first_seen = list(dict.fromkeys(offsets))
        assert first_seen == sorted(first_seen)
