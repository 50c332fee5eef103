"""Partitions that are added to a topic are noticed by an app and by a producer that run already."""

from __future__ import annotations

import time

from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import WITHIN_S, Collected

OFTEN = {"topic.metadata.refresh.interval.ms": 500}


def add_partitions(cluster: RealCluster, topic: str, count: int) -> None:
    """Raises the number of partitions; returns when the brokers have them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(WITHIN_S)


def test_messages_of_an_added_partition_are_handled(real_cluster: RealCluster) -> None:
    topic, seen, assigned = unique("growing"), Collected[tuple[int, bytes]](), Collected[tuple[str, int]]()
    real_cluster.create_topic(topic)
    app = awoke.App(unique("app"), bootstrap_servers=real_cluster.bootstrap_servers, kafka=OFTEN)

    def note(event: awoke.Event) -> None:
        for at in event.fields["partitions"]:
            assigned.add(at)

    app.events.subscribe("partitions.assigned", note)

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        seen.add((message.partition, message.value))

    with running(app):
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            producer.produce(topic, b"before", partition=0).wait(WITHIN_S)
        assert seen.wait_for(1) == [(0, b"before")]
        add_partitions(real_cluster, topic, 3)
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            for partition in (1, 2):
                producer.produce(topic, b"added", partition=partition).wait(WITHIN_S)
        seen.wait_until(lambda items: {(1, b"added"), (2, b"added")} <= set(items))
    assert set(assigned.items) == {(topic, 0), (topic, 1), (topic, 2)}
    assert len(seen.items) == 3


def test_a_producer_sends_to_an_added_partition(real_cluster: RealCluster) -> None:
    topic = unique("growing")
    real_cluster.create_topic(topic)
    with awoke.Producer(real_cluster.bootstrap_servers, kafka=OFTEN) as producer:
        assert producer.produce(topic, b"before", key=b"key").wait(WITHIN_S).partition == 0
        add_partitions(real_cluster, topic, 10)
        found, deadline_s = {0}, time.monotonic() + WITHIN_S
        number = 0
        while found == {0} and time.monotonic() < deadline_s:
            number += 1
            found.add(producer.produce(topic, b"after", key=b"%d" % number).wait(WITHIN_S).partition)
    assert len(found) > 1
