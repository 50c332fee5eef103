"""aiokafka on embedded brokers and on Apache Kafka: topics, partitions, offsets, transactions, groups."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.test_foreign_clients import AT_MS, partitions_of, three_messages
from tests.support.clusters import Cluster, unique
from tests.support.waiting import wait_until

pytest.importorskip("aiokafka", reason="there is no aiokafka for this Python")

import aiokafka
import aiokafka.admin
from aiokafka.structs import TopicPartition


@pytest.fixture
async def aio(cluster: Cluster) -> AsyncIterator[aiokafka.admin.AIOKafkaAdminClient]:
    client = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    await client.start()
    yield client
    await client.close()


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


async def test_aiokafka_asks_offsets_by_time(cluster: Cluster) -> None:
    partition = TopicPartition(three_messages(cluster), 0)
    async with aiokafka.AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:

        async def offset(late_ms: int) -> int | None:
            found = await consumer.offsets_for_times({partition: AT_MS + late_ms})
            return None if found[partition] is None else found[partition].offset

        assert [await offset(late) for late in (0, 1, 1_000, 2_000, 2_001)] == [0, 1, 1, 2, None]
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 3}


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
