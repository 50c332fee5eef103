"""Topics that no broker would create are refused before one is asked; the risks of those that are."""

from __future__ import annotations

import pytest

import awoke
from awoke.console.clusters.topics import check_new, risks_of
from awoke.console.clusters.views import NewTopic, TopicPartition


@pytest.mark.parametrize(
    "new",
    [
        NewTopic(name=""),
        NewTopic(name="a b"),
        NewTopic(name="orders", partitions=0),
        NewTopic(name="orders", partitions=10_001),
        NewTopic(name="orders", replicas=0),
    ],
)
def test_a_topic_that_no_broker_would_create_is_refused(new: NewTopic) -> None:
    with pytest.raises(awoke.ConfigError):
        check_new(new)


def test_a_topic_with_the_brokers_defaults_is_fine() -> None:
    check_new(NewTopic(name="orders"))


def partition(number: int, leader: int | None, replicas: list[int], in_sync: list[int] | None = None) -> TopicPartition:
    in_sync = replicas if in_sync is None else in_sync
    return TopicPartition(partition=number, leader=leader, replicas=replicas, in_sync=in_sync)


HEALTHY = partition(0, 1, [1, 2, 3])


@pytest.mark.parametrize(
    ("partitions", "least", "kinds"),
    [
        ([HEALTHY], 2, []),
        ([HEALTHY], None, []),
        ([partition(0, None, [1, 2, 3], [])], 2, ["no leader"]),
        ([partition(0, 1, [1, 2, 3], [1, 2])], None, ["under-replicated"]),
        ([partition(0, 1, [1, 2, 3], [1, 2])], 2, ["at the least", "under-replicated"]),
        ([partition(0, 1, [1, 2, 3], [1])], 2, ["producers refused", "under-replicated"]),
        ([partition(0, 1, [1])], 1, ["one replica"]),
        ([partition(0, 1, [1, 2])], 2, ["no spare replica"]),
        ([HEALTHY, partition(1, None, [2], []), partition(2, 1, [1])], None, ["no leader", "one replica"]),
    ],
)
def test_the_risks_come_from_the_replicas(
    partitions: list[TopicPartition], least: int | None, kinds: list[str]
) -> None:
    assert [each.kind for each in risks_of(partitions, [1, 2, 3], least)] == kinds


def test_a_risk_names_its_partitions_and_the_worst_comes_first() -> None:
    found = risks_of([HEALTHY, partition(4, 1, [1, 2], [1]), partition(7, None, [1, 2], [])], [1, 2])
    assert [(each.kind, each.partitions) for each in found] == [("no leader", [7]), ("under-replicated", [4])]
    assert "partition 7 has no leader" in found[0].text


def test_a_single_broker_needs_no_second_replica() -> None:
    assert risks_of([partition(0, 1, [1])], [1], 1) == []
