"""The differences between a declared topic and the cluster's, and the change that ends each."""

from __future__ import annotations

import pytest

from awoke.payloads.declared_topics.declaration import Declaration
from awoke.payloads.declared_topics.differences import (
    DifferenceRow,
    PartitionsExtra,
    PartitionsMissing,
    ReplicationDiffers,
    SettingDiffers,
    SettingsDiffer,
    TopicDifference,
    TopicMissing,
    numbers_that_differ,
    settings_that_differ,
)
from tests.support.fake_topics import FakeTopics, Setting


def numbers(declaration: Declaration, *replicas: int) -> list[TopicDifference]:
    found = FakeTopics(orders=list(replicas)).describe_topic("orders")
    return list(numbers_that_differ("orders", declaration, found))


def test_equal_numbers_and_undeclared_ones_do_not_differ() -> None:
    assert numbers(Declaration(2, 3, {}), 3, 3) == []
    assert numbers(Declaration(None, None, {}), 1, 2) == []


def test_fewer_partitions_are_increased_with_a_note_about_keys() -> None:
    (found,) = numbers(Declaration(12, None, {}), 1, 1)
    assert found == PartitionsMissing(topic="orders", found=2, declared=12)
    assert found.rows() == [DifferenceRow("orders", "partitions", "2", "12", "add 10")]
    assert found.is_made
    assert "later messages of a key may go to another one" in (found.note or "")
    cluster = FakeTopics(orders=[1, 1])
    assert found.make(cluster) == "topic orders: 12 partitions instead of 2"
    assert cluster.made == [("partitions", "orders", 12)]


def test_more_partitions_are_reported_only() -> None:
    (found,) = numbers(Declaration(1, None, {}), 1, 1, 1)
    assert found == PartitionsExtra(topic="orders", found=3, declared=1)
    assert found.rows() == [DifferenceRow("orders", "partitions", "3", "1", "none")]
    assert not found.is_made
    assert "declare 3, or copy" in (found.note or "")


def test_another_replication_is_reported_with_the_way_to_change_it() -> None:
    (found,) = numbers(Declaration(None, 3, {}), 3, 1, 2, 1)
    assert found == ReplicationDiffers(topic="orders", found=(1, 2, 3), declared=3)
    assert found.rows() == [DifferenceRow("orders", "replication", "1 and 2 and 3", "3", "none")]
    assert not found.is_made
    assert "kafka-reassign-partitions.sh" in (found.note or "")


@pytest.mark.parametrize(
    ("declaration", "made", "said"),
    [
        (Declaration(3, 2, {"a": "b"}), ("create", "orders", 3, 2, {"a": "b"}), "3 partitions, 2 replicas, a=b"),
        (Declaration(None, None, {}), ("create", "orders", -1, -1, {}), "as the brokers choose"),
    ],
)
def test_a_missing_topic_is_created_as_declared(declaration: Declaration, made: tuple[object], said: str) -> None:
    missing, cluster = TopicMissing(topic="orders", declaration=declaration), FakeTopics()
    assert missing.rows() == [DifferenceRow("orders", "topic", "missing", said, "create it")]
    assert (missing.is_made, missing.note) == (True, None)
    assert missing.make(cluster) == f"topic orders created: {said}"
    assert cluster.made == [made]


def test_settings_that_differ_are_set_together_and_others_are_left_alone() -> None:
    found = {"a": Setting("1"), "b": Setting("2"), "c": Setting("3"), "hidden": Setting(None)}
    (differs,) = settings_that_differ("orders", {"a": "1.0", "b": "5", "c": "6", "hidden": "x"}, found)
    assert differs == SettingsDiffer(
        topic="orders", settings=(SettingDiffers("b", "2", "5"), SettingDiffers("c", "3", "6"))
    )
    assert differs.rows() == [
        DifferenceRow("orders", "b", "2", "5", "set it"),
        DifferenceRow("orders", "c", "3", "6", "set it"),
    ]
    assert (differs.is_made, differs.note) == (True, None)


def test_settings_are_altered_in_one_request() -> None:
    cluster = FakeTopics(orders=[1])
    (differs,) = settings_that_differ(
        "orders", {"retention.ms": "5", "cleanup.policy": "compact"}, cluster.describe_configs("orders")
    )
    assert differs.make(cluster) == "topic orders: set retention.ms=5, cleanup.policy=compact"
    assert cluster.made == [("settings", "orders", {"retention.ms": "5", "cleanup.policy": "compact"})]


def test_a_setting_that_the_brokers_do_not_list_is_noted() -> None:
    (differs,) = settings_that_differ("orders", {"retntion.ms": "5"}, {})
    assert differs.rows() == [DifferenceRow("orders", "retntion.ms", "unknown", "5", "set it")]
    assert differs.note == "orders: the brokers list no setting retntion.ms"
