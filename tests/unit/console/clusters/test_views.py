"""The view models of topics."""

from __future__ import annotations

from awoke.console.clusters.views import TopicPartition


def test_the_offsets_of_a_partition_are_known_with_both_ends_of_its_log() -> None:
    partition = TopicPartition(partition=0, leader=1, replicas=[1], in_sync=[1], start=2, end=5)
    assert partition.offsets == 3
    assert TopicPartition(partition=0, leader=1, replicas=[1], in_sync=[1], start=2).offsets is None
