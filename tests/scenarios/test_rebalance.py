"""A member joins and leaves while messages flow: nothing is lost, and order is kept, under each protocol."""

from __future__ import annotations

import threading

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import RealCluster, unique
from tests.support.waiting import Collected

PARTITIONS = 6
PROTOCOLS = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "kip-848": {"group.protocol": "consumer"},
}


def member(cluster: RealCluster, group: str, topic: str, seen: Collected[tuple[int, int]], protocol: str) -> awoke.App:
    """An app that writes down partition and offset of each message."""
    app = awoke.App(
        unique("member"), group=group, bootstrap_servers=cluster.bootstrap_servers, kafka=PROTOCOLS[protocol]
    )

    @app.on(topic, batch=awoke.Batching(max_messages=100))
    def see(message: awoke.Message[bytes]) -> None:
        seen.add((message.partition, message.offset))

    return app


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_come_and_go_under_load(real_cluster: RealCluster, protocol: str) -> None:
    topic, group = unique("load"), unique("group")
    real_cluster.create_topic(topic, PARTITIONS)
    seen: Collected[tuple[int, int]] = Collected()
    first, second = (member(real_cluster, group, topic, seen, protocol) for _ in range(2))
    assigned: Collected[awoke.Event] = Collected()
    second.events.subscribe("partitions.assigned", assigned.add)
    second.events.subscribe("partitions.revoked", assigned.add)
    stop, sent = threading.Event(), [0]

    def load() -> None:
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            while not stop.is_set():
                handles = [producer.produce(topic, b"value") for _ in range(200)]
                awoke.wait_all(handles, 30)
                sent[0] += 200

    sender = threading.Thread(target=load)
    with running(first):
        seen_first = len(seen.items)
        sender.start()
        try:
            seen.wait_for(seen_first + 1_000)
            with running(second):
                assigned.wait_until(lambda events: any(event.fields["partitions"] for event in events))
                seen.wait_for(len(seen.items) + 2_000)
            seen.wait_for(len(seen.items) + 1_000)
        finally:
            stop.set()
            sender.join()
        seen.wait_for(sent[0])
    ends = real_cluster.admin.end_offsets(topic)
    assert set(seen.items) == {(partition, offset) for partition, end in ends.items() for offset in range(end)}
    assert len(seen.items) == sent[0], "members that leave in order repeat nothing"
    for partition in ends:
        offsets = [offset for at, offset in seen.items if at == partition]
        assert offsets == sorted(offsets)
    assert sum(real_cluster.admin.group_offsets(group).values()) == sent[0]
