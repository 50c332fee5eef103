"""What is left of one transaction spoils the next one of the producer: two faults and their remedy.

librdkafka sends EndTxn again by itself when its connection breaks; the delayed request arrives later. The broker then
ends the open transaction of that producer and epoch. And it gives the sequence numbers of messages that an abort drops
to the next ones: a broker that has written the first takes those for the same. awoke counts both, and begins the next
transaction under another epoch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import confluent_kafka
import pytest

import awoke
from tests.support.clusters import unique
from tests.support.kafka_proxy import ProxiedCluster
from tests.support.waiting import Collected, elapse

# A held request must not block the coordinator's answers to others for long.
KAFKA = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200, "socket.timeout.ms": 5_000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ProxiedCluster]:
    with ProxiedCluster() as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: ProxiedCluster) -> str:
    cluster.proxy.clear()
    name = unique("end-txn")
    with awoke.Admin(cluster.direct_servers) as admin:
        admin.create_topic(name, timeout_s=30)
    return name


def values(cluster: ProxiedCluster, topic: str) -> list[bytes | None]:
    with awoke.Reader(topic, bootstrap_servers=cluster.direct_servers) as reader:
        return [message.value for message in reader.read_until_end(30)]


def test_without_the_remedy_a_late_commit_takes_half_of_the_next_transaction(
    cluster: ProxiedCluster, topic: str
) -> None:
    identifier = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": unique("id")}
    producer = confluent_kafka.Producer({**KAFKA, **identifier})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"first")
    rule = cluster.proxy.rule("EndTxn", "hold")
    producer.commit_transaction(30)  # Held, cut, and asked again: committed by the second request.
    rule.wait_happened()
    producer.begin_transaction()
    producer.produce(topic, b"torn")
    producer.flush(30)
    cluster.proxy.release(rule)
    wait_for_value(
        cluster, topic, b"torn"
    )  # Committed by a request of the transaction before: it was never to be seen.
    with contextlib.suppress(confluent_kafka.KafkaException):
        producer.abort_transaction(30)
    assert values(cluster, topic) == [b"first", b"torn"]


def wait_for_value(cluster: ProxiedCluster, topic: str, value: bytes) -> None:
    with awoke.Reader(topic, bootstrap_servers=cluster.direct_servers) as reader:
        for message in reader:
            if message.value == value:
                return


def test_with_the_remedy_a_late_commit_changes_nothing(cluster: ProxiedCluster, topic: str) -> None:
    replaced, events = Collected[awoke.Event](), awoke.Events()
    events.subscribe("producer.replaced", replaced.add)
    with awoke.Producer(
        cluster.bootstrap_servers, transactional_id=unique("id"), kafka=KAFKA, events=events
    ) as producer:
        with producer.transaction() as t:
            t.produce(topic, b"first")
            rule = cluster.proxy.rule("EndTxn", "hold")
        rule.wait_happened()
        with pytest.raises(ZeroDivisionError), producer.transaction() as t:
            t.produce(topic, b"torn").wait(30)
            cluster.proxy.release(rule)
            with producer_of_another_id(cluster) as other, other.transaction() as o:
                o.produce(topic, b"between")  # The coordinator has had time for the late request.
            raise ZeroDivisionError
        with producer.transaction() as t:
            t.produce(topic, b"after")
    assert len(replaced.wait_for(1)) == 1
    assert values(cluster, topic) == [b"first", b"between", b"after"]


def producer_of_another_id(cluster: ProxiedCluster) -> awoke.Producer:
    return awoke.Producer(cluster.direct_servers, transactional_id=unique("other"))


AWAY = {**KAFKA, "reconnect.backoff.ms": 2_000, "reconnect.backoff.max.ms": 2_000}
"""Connections are made again after the abort."""


def test_without_the_remedy_a_message_is_taken_for_one_of_the_aborted_transaction(
    cluster: ProxiedCluster, topic: str
) -> None:
    """librdkafka gives the sequence number of a message that it drops to the next one."""
    identifier = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": unique("id")}
    producer = confluent_kafka.Producer({**AWAY, **identifier})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"before")
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    written_and_cut(cluster)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"after")
    producer.commit_transaction(30)
    assert values(cluster, topic) == [b"before"], "librdkafka has mended it"


def test_with_the_remedy_a_message_is_not_taken_for_one_of_the_aborted_transaction(
    cluster: ProxiedCluster, topic: str
) -> None:
    with awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id"), kafka=AWAY) as producer:
        with producer.transaction() as t:
            t.produce(topic, b"before")
        with pytest.raises(ZeroDivisionError), producer.transaction() as t:
            t.produce(topic, b"aborted")
            written_and_cut(cluster)
            raise ZeroDivisionError
        with producer.transaction() as t:
            t.produce(topic, b"after")
    assert values(cluster, topic) == [b"before", b"after"]


def written_and_cut(cluster: ProxiedCluster) -> None:
    """Have the broker write a message whose producer gets no answer, and wants to send it again."""
    cluster.proxy.rule("Produce", "cut", "response").wait_happened()
    elapse(0.5, "the producer notices that its connection is gone")


@pytest.mark.parametrize("action", ["drop", "cut", "cut_after"])
def test_a_commit_without_an_answer_ends_well(cluster: ProxiedCluster, topic: str, action: str) -> None:
    with awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id"), kafka=KAFKA) as producer:
        with producer.transaction() as t:
            t.produce(topic, b"before")
        direction = "response" if action == "drop" else "request"
        rule = cluster.proxy.rule("EndTxn", action, direction)  # type: ignore[arg-type]
        with producer.transaction(timeout_s=30) as t:
            t.produce(topic, b"committed")
        assert rule.fired == 1
        with producer.transaction() as t:
            t.produce(topic, b"after")
    assert values(cluster, topic) == [b"before", b"committed", b"after"]


def test_a_commit_that_is_never_answered_is_in_doubt(cluster: ProxiedCluster, topic: str) -> None:
    with awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id"), kafka=KAFKA) as producer:
        with pytest.raises(awoke.TransactionInDoubt), producer.transaction(timeout_s=10) as t:
            t.produce(topic, b"doubtful")
            rule = cluster.proxy.rule("EndTxn", "drop", "response", times=100)
        assert rule.fired >= 1
        cluster.proxy.clear()
        with producer.transaction() as t:  # Its begin ends the one before, as the broker had decided.
            t.produce(topic, b"after")
    assert values(cluster, topic) == [b"doubtful", b"after"]


@pytest.mark.parametrize("api", ["Produce", "AddPartitionsToTxn"])
@pytest.mark.parametrize("action", ["cut", "cut_after"])
def test_other_requests_that_are_cut_are_sent_again(cluster: ProxiedCluster, topic: str, api: str, action: str) -> None:
    with awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id"), kafka=KAFKA) as producer:
        with producer.transaction() as t:
            t.produce(topic, b"before")
        rule = cluster.proxy.rule(api, action)  # type: ignore[arg-type]
        with producer.transaction() as t:
            t.produce_many(topic, [b"1", b"2"])
        assert rule.fired == 1
    assert values(cluster, topic) == [b"before", b"1", b"2"]
