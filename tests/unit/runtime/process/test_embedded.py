"""Brokers inside the process: they are known as such while they run, and have the topics that were created."""

from __future__ import annotations

import pytest

import awoke
from awoke.runtime.process.embedded import EmbeddedCluster
from awoke.settings import embedded


def test_the_address_of_brokers_inside_the_process_is_known_until_they_close() -> None:
    with EmbeddedCluster(2) as cluster:
        assert len(cluster.bootstrap_servers.split(",")) == 2
        assert cluster.bootstrap_servers in embedded
    assert cluster.bootstrap_servers not in embedded
    cluster.close()


def test_a_topic_has_its_partitions_and_stays_as_it_was_created() -> None:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", 3)
        with awoke.Admin(cluster.bootstrap_servers) as admin:
            cluster.create_topic("refunds")
            assert [(each.name, len(each.partitions)) for each in admin.topics()] == [("orders", 3), ("refunds", 1)]
            assert len(admin.brokers()) == 1
            with pytest.raises(awoke.UnknownTopic):
                admin.describe_topic("payments")


def test_a_declared_topic_has_the_partitions_that_it_declares() -> None:
    with EmbeddedCluster() as cluster:
        cluster.create_topic(awoke.Topic("orders", partitions=3, replication=3))
        cluster.create_topic(awoke.Topic("few", partitions=3), partitions=2)
        cluster.create_topic(awoke.Topic("refunds", config={}))
        with awoke.Admin(cluster.bootstrap_servers) as admin:
            found = {each.name: len(each.partitions) for each in admin.topics()}
    assert found == {"orders": 3, "few": 2, "refunds": 1}


@pytest.mark.parametrize(("name", "partitions", "replicas"), [("a b", 1, 1), ("orders", 0, 1), ("orders", 1, 3)])
def test_a_topic_that_kafka_would_refuse_is_refused(name: str, partitions: int, replicas: int) -> None:
    text = "is no name of a topic|a topic of 2 embedded brokers has at least 1 partition and 1 to 2 replicas, not "
    with EmbeddedCluster(2) as cluster, awoke.Admin(cluster.bootstrap_servers) as admin:
        with pytest.raises(ValueError, match=text):
            cluster.create_topic(name, partitions, replicas)
        assert admin.topics() == []


def test_brokers_that_were_closed_are_gone() -> None:
    with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
    with awoke.Admin(address) as admin, pytest.raises(awoke.BrokerUnreachable):
        admin.brokers(0.1)


def test_a_broker_that_is_down_refuses_connections_until_it_is_up_again() -> None:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        cluster.set_broker_up(1, False)
        with awoke.Admin(cluster.bootstrap_servers) as admin:
            with pytest.raises(awoke.BrokerUnreachable):
                admin.brokers(0.1)
            cluster.set_broker_up(1, True)
            assert [each.id for each in admin.brokers(10)] == [1]


def test_a_broker_answers_later_by_its_round_trip() -> None:
    with EmbeddedCluster() as cluster, awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.brokers(10)
        cluster.set_round_trip(1, 60_000)
        with pytest.raises(awoke.BrokerUnreachable):
            admin.brokers(0.1)
