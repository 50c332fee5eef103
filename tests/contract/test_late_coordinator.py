"""A request to a group whose coordinator is not available yet goes on when it is.

librdkafka (2.12.1) asks for it three times, and then lets the request wait for its time-out:
`crates/kafka/src/librdkafka/patches/0003_coordinator_question.c`. Kafka refuses the question while it makes the topic
of the committed offsets, or elects another leader.
"""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.testing import EmbeddedCluster

FIND_COORDINATOR = 10
REFUSED = 8


def refuse(cluster: EmbeddedCluster) -> list[Any]:
    """Has the question for a coordinator refused several times; returns these faults."""
    return [
        cluster._native.inject("refuse_request", ["COORDINATOR_NOT_AVAILABLE"], [FIND_COORDINATOR])
        for _ in range(REFUSED)
    ]


def test_a_request_goes_on_when_the_coordinator_is_there() -> None:
    with EmbeddedCluster() as cluster, awoke.Admin(cluster.bootstrap_servers) as admin:
        cluster.create_topic("topic")
        faults = refuse(cluster)
        admin.alter_group_offsets("group", {("topic", 0): 0}, timeout_s=60)
        assert admin.group_offsets("group") == {("topic", 0): 0}
        assert all(each.wait(0) for each in faults)


def test_a_request_whose_time_is_over_leaves_the_client_usable() -> None:
    with EmbeddedCluster() as cluster, awoke.Admin(cluster.bootstrap_servers) as admin:
        cluster.create_topic("topic")
        admin.topics()
        faults = refuse(cluster)
        with pytest.raises(awoke.BrokerUnreachable, match=r"within 0\.5 s"):
            admin.alter_group_offsets("group", {("topic", 0): 0}, timeout_s=0.5)
        admin.alter_group_offsets("group", {("topic", 0): 0}, timeout_s=60)
        assert all(each.wait(0) for each in faults)
