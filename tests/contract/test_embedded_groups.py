"""Groups of embedded brokers rebalance at once when all members have joined again, as those of real brokers do.

The session lasts for 45 s here, which is more than a test waits: no rebalance of these waits for its end.
"""

from __future__ import annotations

from collections.abc import Callable

import awoke
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import Collected, wait_until

CreateTopic = Callable[..., str]
JOINED_WITHIN_S = 35


class Member:
    """An app of a group, with the messages it saw."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        kafka = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 200}
        self.app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, group=group, kafka=kafka)
        self.seen: Collected[bytes] = Collected()

        @self.app.on(topic)
        def see(message: awoke.Message[bytes]) -> None:
            self.seen.add(message.value)


def send(cluster: Cluster, topic: str, value: bytes) -> None:
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        producer.produce(topic, value).wait(30)


def test_a_member_that_joins_a_group_which_all_members_left_gets_its_messages_at_once(
    cluster: Cluster, topic: CreateTopic
) -> None:
    name, group = topic(), unique("group")
    for value in (b"first", b"second", b"third"):
        member = Member(cluster, name, group)
        with running(member.app):
            send(cluster, name, value)
            # Nothing comes twice: the offsets that were committed are still there.
            assert member.seen.wait_for(1, JOINED_WITHIN_S) == [value]


def test_a_member_gets_the_partitions_of_one_that_leaves_at_once(cluster: Cluster, topic: CreateTopic) -> None:
    name, group = topic(partitions=2), unique("group")
    stays, leaves = Member(cluster, name, group), Member(cluster, name, group)
    with running(stays.app) as runner:
        wait_until(lambda: len(runner.partitions()) == 2, "it has both partitions", JOINED_WITHIN_S)
        with running(leaves.app) as other:
            both = (runner, other)
            wait_until(lambda: [len(each.partitions()) for each in both] == [1, 1], "each has one", JOINED_WITHIN_S)
        wait_until(lambda: len(runner.partitions()) == 2, "it has both partitions again", JOINED_WITHIN_S)
