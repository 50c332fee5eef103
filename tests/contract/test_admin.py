"""Topics, brokers, offsets; reading without a group."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import awoke
from tests.support.clusters import Cluster, RealCluster, unique

CreateTopic = Callable[..., str]


def test_a_topic_is_described_with_its_partitions(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic(partitions=3)
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        assert [each.partition for each in admin.describe_topic(name).partitions] == [0, 1, 2]
        assert name in {each.name for each in admin.topics()}
        assert admin.end_offsets(name) == admin.start_offsets(name) == {0: 0, 1: 0, 2: 0}
        assert [f"127.0.0.1:{port}" for port in cluster.bootstrap_servers.rpartition(":")[2:]] == [
            broker.address for broker in admin.brokers()
        ]


def test_topics_are_created_and_deleted(real_cluster: RealCluster) -> None:
    name = unique("made")
    with awoke.Admin(real_cluster.bootstrap_servers) as admin:
        admin.create_topic(name, partitions=2, replicas=1, config={"retention.ms": "1000"})
        with pytest.raises(awoke.KafkaError) as twice:
            admin.create_topic(name)
        assert twice.value.code_name == "TOPIC_ALREADY_EXISTS"
        admin.delete_topic(name)
        with pytest.raises(awoke.UnknownTopic):
            admin.delete_topic(name)


def test_an_unknown_topic_is_named(real_cluster: RealCluster) -> None:
    with awoke.Admin(real_cluster.bootstrap_servers) as admin, pytest.raises(awoke.UnknownTopic, match="'nowhere'"):
        admin.describe_topic("nowhere")


def test_an_unreachable_broker_is_named() -> None:
    with awoke.Admin("127.0.0.1:1") as admin:
        with pytest.raises(awoke.BrokerUnreachable, match=r"127\.0\.0\.1:1"):
            admin.brokers(0.3)
        with pytest.raises(awoke.BrokerUnreachable, match="create topic x"):
            admin.create_topic("x", timeout_s=0.3)


def test_a_reader_starts_where_it_is_told(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        awoke.wait_all([producer.produce(name, str(number)) for number in range(10)], 10)
    for start, first in (("earliest", 0), (4, 4), (-3, 7)):
        with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers, start=start) as reader:
            assert [message.offset for message in reader.read_until_end(30)] == list(range(first, 10))


def test_a_reader_that_is_closed_says_so(cluster: Cluster, topic: CreateTopic) -> None:
    reader = awoke.Reader(topic(), bootstrap_servers=cluster.bootstrap_servers)
    reader.close()
    with pytest.raises(awoke.ClosedError):
        next(iter(reader))


def test_calls_that_have_no_answer_fail_when_the_admin_closes() -> None:
    admin = awoke.Admin("127.0.0.1:1")
    call = admin._native.create_topics([("x", 1, 1, [])], 60)
    assert not call.done()
    admin.close()
    with pytest.raises(awoke.ClosedError):
        call.wait(60)
