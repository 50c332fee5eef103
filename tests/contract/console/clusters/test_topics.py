"""Topics as the console lists, shows, creates and changes them."""

from __future__ import annotations

import pytest

import awoke
from awoke.console.clusters.topics import (
    add_partitions,
    change_configs,
    create_topic,
    list_topics,
    plan_configs,
    show_topic,
)
from awoke.console.clusters.views import ConfigChange, NewTopic
from tests.support.clusters import Cluster, unique


def test_a_topic_is_created_shown_and_changed(cluster: Cluster) -> None:
    admin, name = cluster.admin, unique("topic")
    create_topic(admin, NewTopic(name=name, partitions=2, config={"retention.ms": "1000"}))
    with pytest.raises(awoke.KafkaError, match="exists"):
        create_topic(admin, NewTopic(name=name, partitions=2))
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, b"x", partition=0) for _ in range(3)], 30)
    found = show_topic(admin, name)
    assert [(each.partition, each.start, each.end) for each in found.partitions] == [(0, 0, 3), (1, 0, 0)]
    assert (found.offsets, found.notes, found.risks) == (3, [], [])
    assert ("retention.ms", "1000", False) in [(each.name, each.value, each.is_default) for each in found.configs]
    assert add_partitions(admin, name, 3) == 1
    with pytest.raises(awoke.ConfigError, match="from 4 to"):
        add_partitions(admin, name, 2)
    change = ConfigChange(name="retention.ms", before="1000", after="2000")
    assert plan_configs(admin, name, {"retention.ms": "2000"}) == [change]
    assert change_configs(admin, name, {"retention.ms": "2000"}) == [change]
    with pytest.raises(awoke.ConfigError, match="no setting 'retention'"):
        plan_configs(admin, name, {"retention": "1"})


def test_topics_are_listed_by_pages(cluster: Cluster) -> None:
    word = unique("listed")
    for number in range(3):
        cluster.create_topic(f"{word}-{number}")
    cluster.create_topic(f"__{word}")
    first = list_topics(cluster.admin, word.upper(), limit=2)
    rest = list_topics(cluster.admin, word, at=2)
    names = [each.name for each in [*first.topics, *rest.topics]]
    assert names == [f"{word}-0", f"{word}-1", f"{word}-2", f"__{word}"], "internal ones come last"
    assert (first.total, first.at, rest.at, rest.topics[-1].is_internal) == (4, 0, 2, True)
    assert [each.id for each in first.brokers] == [each.id for each in cluster.admin.brokers()]


def test_a_topic_that_does_not_exist_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(awoke.UnknownTopic):
        show_topic(cluster.admin, unique("missing"))
