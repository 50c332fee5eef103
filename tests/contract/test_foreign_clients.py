"""Clients that are not awoke's on embedded brokers and on Apache Kafka: topics, partitions, offsets, transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import pytest
from aiokafka.structs import TopicPartition
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


@pytest.fixture
async def aio(cluster: Cluster) -> AsyncIterator[aiokafka.admin.AIOKafkaAdminClient]:
    client = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    await client.start()
    yield client
    await client.close()


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


async def test_aiokafka_makes_a_topic_adds_partitions_and_deletes_it(
    cluster: Cluster, aio: aiokafka.admin.AIOKafkaAdminClient
) -> None:
    name = unique("foreign")
    await aio.create_topics([aiokafka.admin.NewTopic(name, num_partitions=1, replication_factor=1)])
    wait_until(lambda: partitions_of(cluster, name) == 1, "the topic is there")
    await aio.create_partitions({name: aiokafka.admin.NewPartitions(total_count=3)})
    wait_until(lambda: partitions_of(cluster, name) == 3, "it has all partitions")
    await aio.delete_topics([name])
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


async def test_aiokafka_asks_offsets_by_time(cluster: Cluster) -> None:
    partition = TopicPartition(three_messages(cluster), 0)
    async with aiokafka.AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:

        async def offset(late_ms: int) -> int | None:
            found = await consumer.offsets_for_times({partition: AT_MS + late_ms})
            return None if found[partition] is None else found[partition].offset

        assert [await offset(late) for late in (0, 1, 1_000, 2_000, 2_001)] == [0, 1, 1, 2, None]
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 3}


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


async def test_aiokafka_reads_what_is_committed(cluster: Cluster) -> None:
    name = unique("foreign")
    cluster.create_topic(name)
    servers = cluster.bootstrap_servers
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id=unique("id")) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(name, b"aborted")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(name, b"committed")
    for isolation, values in (
        ("read_committed", [b"committed"]),
        ("read_uncommitted", [b"aborted", b"committed"]),
    ):
        options = {"isolation_level": isolation, "auto_offset_reset": "earliest"}
        async with aiokafka.AIOKafkaConsumer(name, bootstrap_servers=servers, **options) as consumer:
            assert [(await consumer.getone()).value for _ in values] == values


async def test_members_of_aiokafka_share_a_group_and_its_offsets(cluster: Cluster) -> None:
    name, group = three_messages(cluster), unique("group")
    options = {"bootstrap_servers": cluster.bootstrap_servers, "group_id": group, "auto_offset_reset": "earliest"}
    for value in (b"0", b"1"):
        async with aiokafka.AIOKafkaConsumer(name, enable_auto_commit=False, **options) as consumer:
            assert (await consumer.getone()).value == value
            await consumer.commit()
    assert cluster.admin.group_offsets(group) == {(name, 0): 2}
