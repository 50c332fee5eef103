"""Plans: the differences of all declared topics, applied in order, stopped at the first refusal, and applied again."""

from __future__ import annotations

import pytest

import awoke
from awoke.payloads.declared_topics.plan import Unread, apply, compared_settings, plan_of
from awoke.payloads.topics import DeclaredTopics
from tests.support.fake_topics import FakeTopics

DENIED = awoke.AuthorizationFailed("not allowed", 29, "TOPIC_AUTHORIZATION_FAILED")
REFUSED = awoke.KafkaError("policy violation", 44, "POLICY_VIOLATION")


def declared(*topics: awoke.Topic) -> DeclaredTopics:
    found = DeclaredTopics()
    for each in topics:
        found.add(each)
    return found


TOPICS = declared(
    awoke.Topic("orders", partitions=3, replication=2, config={"cleanup.policy": "compact"}),
    awoke.Topic("audit", partitions=2, config={"retention.ms": 5}),
    awoke.Topic("clicks", partitions=1, replication=2),
)


def test_a_plan_has_the_differences_by_topic_and_is_empty_once_it_is_applied() -> None:
    cluster = FakeTopics(orders=[2, 2], clicks=[1, 1])
    plan = plan_of(cluster, TOPICS)
    assert [(row.topic, row.option) for each in plan.differences for row in each.rows()] == [
        ("audit", "topic"),
        ("clicks", "partitions"),
        ("clicks", "replication"),
        ("orders", "partitions"),
        ("orders", "cleanup.policy"),
    ]
    assert [type(each).__name__ for each in plan.changes] == ["TopicMissing", "PartitionsMissing", "SettingsDiffer"]
    assert len(plan.notes) == 3
    assert list(apply(plan, cluster)) == [
        "topic audit created: 2 partitions, retention.ms=5",
        "topic orders: 3 partitions instead of 2",
        "topic orders: set cleanup.policy=compact",
    ]
    again = plan_of(cluster, TOPICS)
    assert again.changes == ()
    assert {each.topic for each in again.differences} == {"clicks"}


def test_settings_that_the_cluster_has_and_the_app_does_not_declare_are_left_alone() -> None:
    cluster = FakeTopics(clicks=[2])
    cluster.configs["clicks"] = {"retention.ms": "1"}
    assert plan_of(cluster, declared(TOPICS["clicks"])).differences == ()
    assert cluster.described == [], "a topic that declares no settings is not asked for them"


def test_applying_stops_at_the_first_refusal_and_goes_on_there_later() -> None:
    cluster = FakeTopics(orders=[2, 2], clicks=[2])
    cluster.refused["create_partitions"] = REFUSED
    done = []
    with pytest.raises(awoke.AwokeError, match="policy violation; 1 of 3 changes were made") as refused:
        done += list(apply(plan_of(cluster, TOPICS), cluster))
    assert refused.value.__cause__ is REFUSED
    assert [made[0] for made in cluster.made] == ["create"]
    cluster.refused.clear()
    assert len(list(apply(plan_of(cluster, TOPICS), cluster))) == 2
    assert [made[0] for made in cluster.made] == ["create", "partitions", "settings"]


def test_settings_that_can_not_be_read_are_a_note() -> None:
    cluster = FakeTopics(orders=[2, 2, 2])
    cluster.refused["describe_configs"] = DENIED
    plan = plan_of(cluster, declared(TOPICS["orders"]))
    assert plan.differences == ()
    assert plan.unread == (Unread("orders", DENIED),)
    assert plan.notes == ("orders: its settings can't be compared: not allowed",)


def test_an_error_of_the_description_ends_the_plan() -> None:
    cluster = FakeTopics()
    cluster.describe_topic = refusing  # type: ignore[method-assign]
    with pytest.raises(awoke.AuthorizationFailed):
        plan_of(cluster, TOPICS)


def refusing(name: str, timeout_s: float = 0.0) -> awoke.TopicInfo:
    raise DENIED


@pytest.mark.parametrize("error", [DENIED, REFUSED, awoke.OperationTimeout("late")])
def test_an_error_of_the_settings_is_told_and_not_raised(error: awoke.AwokeError) -> None:
    cluster = FakeTopics(orders=[1])
    cluster.refused["describe_configs"] = error
    assert compared_settings(cluster, "orders", {"a": "b"}) == Unread("orders", error)
    assert compared_settings(cluster, "orders", {}) == []
