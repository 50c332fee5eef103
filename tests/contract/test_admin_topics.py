"""Partitions, settings and leaders of topics and brokers, on Kafka; and requests that embedded brokers do not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import awoke
from tests.support.clusters import Cluster, unique
from tests.support.waiting import wait_until


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[awoke.Admin]:
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: awoke.Admin) -> str:
    """A topic with two partitions."""
    name = unique("topic")
    admin.create_topic(name, partitions=2, replicas=1, config={"retention.ms": 1_000})
    return name


def test_partitions_are_added_and_known_at_once(admin: awoke.Admin, topic: str) -> None:
    admin.create_partitions(topic, 5)
    assert len(admin.describe_topic(topic).partitions) == 5
    admin.create_partitions(topic, 5)
    assert len(admin.describe_topic(topic).partitions) == 5


@pytest.mark.parametrize("total", [1, 0, -1])
def test_partitions_are_never_taken_away(total: int, admin: awoke.Admin, topic: str) -> None:
    with pytest.raises(awoke.ConfigError, match=f"'{topic}' has 2 partitions.*removes none; total is {total}") as error:
        admin.create_partitions(topic, total)
    assert error.value.property == "total"
    assert len(admin.describe_topic(topic).partitions) == 2


def test_too_many_partitions_are_refused(admin: awoke.Admin, topic: str) -> None:
    with pytest.raises(awoke.ConfigError, match=r"new_total_cnt out of expected range 1..100000"):
        admin.create_partitions(topic, 1_000_000)


def test_partitions_of_an_unknown_topic_are_refused(admin: awoke.Admin) -> None:
    with pytest.raises(awoke.UnknownTopic, match="'nowhere' does not exist"):
        admin.create_partitions("nowhere", 3)


def test_settings_of_a_topic_are_described_with_their_source(admin: awoke.Admin, topic: str) -> None:
    found = admin.describe_configs(topic)
    assert found["retention.ms"] == awoke.ConfigEntry("retention.ms", "1000", "topic", False, False, False)
    assert found["cleanup.policy"] == awoke.ConfigEntry("cleanup.policy", "delete", "default", True, False, False)
    assert list(found) == sorted(found)


def test_settings_that_are_not_named_stay_as_they_are(admin: awoke.Admin, topic: str) -> None:
    admin.alter_configs(topic, {"cleanup.policy": "compact,delete", "segment.ms": 5_000})
    wait_until(lambda: admin.describe_configs(topic)["segment.ms"].value == "5000", "the broker knows of the change")
    found = admin.describe_configs(topic)
    assert [found[name].value for name in ("cleanup.policy", "retention.ms")] == ["compact,delete", "1000"]
    admin.alter_configs(topic, {"retention.ms": None, "segment.ms": None})
    wait_until(lambda: admin.describe_configs(topic)["segment.ms"].is_default, "the broker knows of the change")
    found = admin.describe_configs(topic)
    assert found["cleanup.policy"].value == "compact,delete"
    assert found["segment.ms"].is_default


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"retention.ms": "soon", "segment.ms": "5000"}, "Invalid value soon for configuration retention.ms"),
        ({"retention": "1", "segment.ms": "5000"}, "Unknown topic config name: retention"),
    ],
)
def test_a_wrong_setting_changes_nothing(change: dict[str, str], text: str, admin: awoke.Admin, topic: str) -> None:
    with pytest.raises(awoke.KafkaError, match=text) as error:
        admin.alter_configs(topic, change)
    assert error.value.code_name == "INVALID_CONFIG"
    found = admin.describe_configs(topic)
    assert (found["retention.ms"].value, found["segment.ms"].is_default) == ("1000", True)


def test_a_setting_without_a_name_is_refused(admin: awoke.Admin, topic: str) -> None:
    with pytest.raises(awoke.ConfigError, match="'' is no name of a setting"):
        admin.alter_configs(topic, {"": "1"})


def test_settings_of_an_unknown_topic_are_an_error(admin: awoke.Admin) -> None:
    with pytest.raises(awoke.UnknownTopic, match="'nowhere' does not exist"):
        admin.describe_configs("nowhere")
    with pytest.raises(awoke.UnknownTopic, match="'nowhere' does not exist"):
        admin.alter_configs("nowhere", {"retention.ms": "1"})


def test_settings_of_a_broker_are_changed_and_taken_back(admin: awoke.Admin) -> None:
    broker_id = admin.brokers()[0].id
    threads = "log.cleaner.threads"

    def source() -> str:
        return admin.describe_broker_configs(broker_id)[threads].source

    assert source() == "default"
    admin.alter_broker_configs(broker_id, {threads: "2"})
    wait_until(lambda: source() == "dynamic broker", "the broker has the setting")
    assert admin.describe_broker_configs(broker_id)[threads].value == "2"
    admin.alter_broker_configs(broker_id, {threads: None})
    wait_until(lambda: source() == "default", "the broker has its default again")


def test_secrets_of_a_broker_do_not_appear(admin: awoke.Admin) -> None:
    found = admin.describe_broker_configs(admin.brokers()[0].id)
    secrets = [each for each in found.values() if each.is_sensitive]
    assert {each.value for each in secrets} == {None}
    assert "ssl.keystore.password" in {each.name for each in secrets}
    assert found["listeners"].is_read_only or found["node.id"].is_read_only


def test_a_setting_that_needs_a_restart_is_refused(admin: awoke.Admin) -> None:
    with pytest.raises(awoke.KafkaError, match=r"Cannot update these configs dynamically: \[node.id\]"):
        admin.alter_broker_configs(admin.brokers()[0].id, {"node.id": "7"})


def test_an_unknown_broker_is_named_with_the_known_ones(admin: awoke.Admin) -> None:
    for ask in (lambda: admin.describe_broker_configs(99), lambda: admin.alter_broker_configs(99, {"a": "1"})):
        with pytest.raises(awoke.ConfigError, match="there is no broker 99: the brokers are 1"):
            ask()


@pytest.mark.parametrize("kind", ["preferred", "unclean"])
def test_partitions_with_their_leader_need_no_election(kind: Any, admin: awoke.Admin, topic: str) -> None:
    assert admin.elect_leaders([(topic, 0), (topic, 1)], kind) == {(topic, 0): False, (topic, 1): False}
    assert admin.elect_leaders([]) == {}


def test_an_election_of_no_known_kind_or_partition_is_refused(admin: awoke.Admin, topic: str) -> None:
    with pytest.raises(awoke.UnknownTopic, match=rf"{topic}\[9\]"):
        admin.elect_leaders([(topic, 0), (topic, 9)])
    with pytest.raises(awoke.ConfigError, match="'preferred' or 'unclean', not 'fair'"):
        admin.elect_leaders([(topic, 0)], "fair")  # type: ignore[arg-type]


Call = Callable[[awoke.Admin, str], object]
