"""`awoke groups` and `awoke topics alter` at the shell, on Kafka."""

from __future__ import annotations

import re

import awoke
from tests.support.clusters import Cluster, unique
from tests.support.command_line import awoke_says

WIDE = {"COLUMNS": "200"}


def test_a_group_is_described_reset_and_deleted(cluster: Cluster) -> None:
    topic, group = unique("topic"), unique("group")
    cluster.create_topic(topic, 2)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(topic, b"x", partition=0) for _ in range(5)], 30)
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.alter_group_offsets(group, {(topic, 0): 4, (topic, 1): 0})
        assert re.search(rf"^{group} +Empty +classic$", awoke_says("groups", "list", *at), re.MULTILINE)
        assert f"{group}: Empty, classic, coordinator" in awoke_says("groups", "describe", group, *at, env=WIDE)
        dry = awoke_says("groups", "reset", group, "--shift-by", "-9", "--dry-run", *at, env=WIDE)
        assert "nearest in the log" in dry
        assert admin.group_offsets(group) == {(topic, 0): 4, (topic, 1): 0}
        moved = awoke_says("groups", "reset", group, "--to-earliest", "--topic", topic, "--yes", *at, env=WIDE)
        assert moved.endswith(f"moved 1 offset of group {group}")
        assert admin.group_offsets(group) == {(topic, 0): 0, (topic, 1): 0}
        awoke_says("groups", "delete", group, "--yes", *at)
        assert admin.group_offsets(group) == {}


def test_a_topic_is_altered_and_shows_its_settings(cluster: Cluster) -> None:
    topic = unique("topic")
    cluster.create_topic(topic, 1)
    at = ("--bootstrap-servers", cluster.bootstrap_servers)
    altered = awoke_says("topics", "alter", topic, "--partitions", "3", "--config", "retention.ms=1000", "--yes", *at)
    assert altered == f"altered topic {topic}"
    shown = awoke_says("topics", "describe", topic, *at, env=WIDE)
    assert "retention.ms" in shown
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        assert len(admin.describe_topic(topic).partitions) == 3
