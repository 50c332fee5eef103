"""Resets that were previewed, of a group that reads one of several topics."""

from __future__ import annotations

import awoke
from awoke.console.clusters.resets import preview_reset, reset
from tests.support.clusters import Cluster, unique


def test_a_reset_of_named_topics_leaves_the_others(mock_cluster: Cluster) -> None:
    admin, group, topics = mock_cluster.admin, unique("group"), [unique("topic"), unique("topic")]
    for each in topics:
        mock_cluster.create_topic(each)
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(each, b"x") for each in topics for _ in range(3)], 30)
    admin.alter_group_offsets(group, {(each, 0): 2 for each in topics})
    preview = preview_reset(admin, group, awoke.Shift(-5), topics[:1])
    assert [(each.after, each.is_clamped) for each in preview.changes] == [(0, True)]
    reset(admin, group, awoke.Shift(-5), topics[:1], digest=preview.digest)
    assert admin.group_offsets(group) == {(topics[0], 0): 0, (topics[1], 0): 2}
