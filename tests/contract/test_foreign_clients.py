"""Clients that are not awoke's on embedded brokers and on Apache Kafka: topics, partitions, offsets, transactions."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import confluent_kafka
import confluent_kafka.admin
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.support.clusters import Cluster, unique
from tests.support.judge import log_of
from tests.support.waiting import wait_until

WITHIN_S = 30.0
AT_MS = 1_700_000_000_000
QUIET = {"log_level": 0}


def admin_of(cluster: Cluster) -> confluent_kafka.admin.AdminClient:
    """Returns a client, which closes when the test's function has ended."""
    return confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})


def results(futures: dict[Any, Future[Any]]) -> list[Any]:
    """Returns the answers of a request, one for each thing that it names. Blocks."""
    return [future.result(WITHIN_S) for future in futures.values()]


def partitions_of(cluster: Cluster, topic: str) -> int:
    """Returns the number of partitions that awoke sees; 0 if there is no such topic."""
    return {each.name: len(each.partitions) for each in cluster.admin.topics()}.get(topic, 0)


def test_confluent_makes_a_topic_adds_partitions_and_deletes_it(cluster: Cluster) -> None:
    confluent, name = admin_of(cluster), unique("foreign")
    results(confluent.create_topics([NewTopic(name, 1, 1)]))
    wait_until(lambda: partitions_of(cluster, name) == 1, "the topic is there")
    results(confluent.create_partitions([NewPartitions(name, 3)]))
    wait_until(lambda: partitions_of(cluster, name) == 3, "it has all partitions")
    (again,) = confluent.create_topics([NewTopic(name, 1, 1)]).values()
    assert "TOPIC_ALREADY_EXISTS" in repr(again.exception(WITHIN_S))
    results(confluent.delete_topics([name]))
    wait_until(lambda: partitions_of(cluster, name) == 0, "the topic is gone")


def three_messages(cluster: Cluster) -> str:
    """Returns a new topic with three messages, each a second after the one before."""
    name = unique("foreign")
    cluster.create_topic(name)
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    for number in range(3):
        producer.produce(name, b"%d" % number, timestamp=AT_MS + 1_000 * number)
        assert producer.flush(WITHIN_S) == 0
    return name


def test_confluent_asks_offsets_by_time(cluster: Cluster) -> None:
    confluent = admin_of(cluster)
    partition = confluent_kafka.TopicPartition(three_messages(cluster), 0)

    def offset(spec: OffsetSpec) -> int:
        (found,) = results(confluent.list_offsets({partition: spec}))
        return int(found.offset)

    assert [offset(OffsetSpec.for_timestamp(AT_MS + late)) for late in (0, 1, 1_000, 2_000)] == [0, 1, 1, 2]
    assert offset(OffsetSpec.for_timestamp(AT_MS + 2_001)) == -1
    first, end = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
    assert (offset(first), offset(end)) == (0, 3)


def test_confluent_reads_what_is_committed(cluster: Cluster) -> None:
    name = unique("foreign")
    cluster.create_topic(name)
    properties = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": unique("id"), **QUIET}
    producer = confluent_kafka.Producer(properties)
    producer.init_transactions(WITHIN_S)
    for value in (b"aborted", b"committed"):
        producer.begin_transaction()
        producer.produce(name, value)
        if value == b"aborted":
            assert producer.flush(WITHIN_S) == 0  # It is on the brokers.
            producer.abort_transaction(WITHIN_S)
        else:
            producer.commit_transaction(WITHIN_S)
    read = {kind: log_of(cluster.bootstrap_servers, name, kind)[0] for kind in ("read_committed", "read_uncommitted")}
    assert [each.value for each in read["read_committed"]] == [b"committed"]
    assert [each.value for each in read["read_uncommitted"]] == [b"aborted", b"committed"]
