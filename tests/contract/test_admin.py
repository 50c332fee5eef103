"""Topics, brokers, offsets; reading without a group."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import awoke
from awoke.admin.topics import AdminTopics
from awoke.waiting.drive import drive
from tests.support.clusters import Cluster, reading, unique
from tests.support.waiting import wait_until

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


def test_an_open_transaction_holds_back_the_stable_offset(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with (
        awoke.Admin(cluster.bootstrap_servers) as admin,
        awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("open")) as producer,
    ):
        with producer.transaction() as transaction:
            transaction.produce(name, b"not committed").wait(30)
            assert (admin.stable_offsets(name), admin.end_offsets(name)) == ({0: 0}, {0: 1})
            assert admin.end_offsets(name, partitions=[]) == {}
            assert admin.end_offsets(name, partitions=[0]) == {0: 1}
        wait_until(lambda: admin.stable_offsets(name) == {0: 2}, "the transaction has ended")


def test_topics_are_created_and_deleted(cluster: Cluster) -> None:
    name = unique("made")
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(name, partitions=2, replicas=1, config={"retention.ms": "1000"})
        with pytest.raises(awoke.KafkaError) as twice:
            admin.create_topic(name)
        assert twice.value.code_name == "TOPIC_ALREADY_EXISTS"
        admin.delete_topic(name)
        with pytest.raises(awoke.UnknownTopic):
            admin.delete_topic(name)


def test_a_topic_that_another_client_makes_is_waited_for(cluster: Cluster) -> None:
    name = unique("awaited")
    with awoke.Admin(cluster.bootstrap_servers) as admin, ThreadPoolExecutor(1) as others:
        admin.topics()  # From here on it is connected: the time-out below is the topic's alone.
        with pytest.raises(awoke.UnknownTopic, match=name):
            admin.wait_for_topic(name, timeout_s=1.0)
        waiting = others.submit(admin.wait_for_topic, name, 30)
        admin.create_topic(name)
        waiting.result(30)
        assert admin.describe_topic(name).name == name


class AskedTwice(AdminTopics):
    """Has a topic made when the brokers were asked for it and did not know it."""

    def __init__(self, cluster: Cluster, admin: awoke.Admin) -> None:
        super().__init__(admin._connection)
        self._cluster, self.asked = cluster, 0

    async def describe(self, name: str, timeout_s: float) -> awoke.TopicInfo:
        self.asked += 1
        try:
            return await super().describe(name, timeout_s)
        except awoke.UnknownTopic:
            if self.asked == 1:
                self._cluster.create_topic(name)
            raise


def test_a_topic_that_was_made_just_now_is_asked_for_again(cluster: Cluster) -> None:
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        topics = AskedTwice(cluster, admin)
        assert len(drive(topics.find(unique("new"), 10, 30)).partitions) == 1
        assert topics.asked > 1


def test_a_topic_that_is_not_made_is_unknown_when_its_time_is_up(cluster: Cluster) -> None:
    with awoke.Admin(cluster.bootstrap_servers) as admin, pytest.raises(awoke.UnknownTopic, match="'nowhere'"):
        admin.find_topic("nowhere", new_within_s=0.2)


def test_an_unknown_topic_is_named(cluster: Cluster) -> None:
    with awoke.Admin(cluster.bootstrap_servers) as admin, pytest.raises(awoke.UnknownTopic, match="'nowhere'"):
        admin.describe_topic("nowhere")


def test_an_unreachable_broker_is_named() -> None:
    with awoke.Admin("127.0.0.1:1") as admin:
        with pytest.raises(awoke.BrokerUnreachable, match=r"127\.0\.0\.1:1"):
            admin.brokers(0.3)
        with pytest.raises(awoke.BrokerUnreachable, match="create topic x"):
            admin.create_topic("x", timeout_s=0.3)


def test_a_reader_starts_where_it_is_told(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, str(number)) for number in range(10)], 10)
    starts: list[tuple[Any, int]] = [("earliest", 0), (4, 4), (-3, 7)]
    for start, first in starts:
        with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers, start=start) as reader:
            assert [message.offset for message in reader.read_until_end(30)] == list(range(first, 10))


def test_a_reader_reads_the_partitions_that_it_is_told(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic(partitions=3)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for partition in range(3):
            awoke.wait_all([producer.produce(name, b"value", partition=partition) for _ in range(4)], 30)
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers, start={0: 3, 2: "earliest"}) as reader:
        seen = sorted((message.partition, message.offset) for message in reader.read_until_end(30))
    assert seen == [(0, 3), (2, 0), (2, 1), (2, 2), (2, 3)]
    with pytest.raises(awoke.UnknownTopic, match="no partition 9"):
        awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers, start={9: 0})


def test_a_reader_starts_at_a_time(cluster: Cluster) -> None:
    name, noon = unique("timed"), datetime.now(UTC) - timedelta(hours=1)
    cluster.create_topic(name)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        for number in range(10):
            timestamp_ms = int(noon.timestamp() * 1_000) + (number - 6) * 1_000
            producer.produce(name, b"value", timestamp_ms=timestamp_ms).wait(30)
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers, start=noon) as reader:
        assert [message.offset for message in reader.read_until_end(30)] == [6, 7, 8, 9]
    with pytest.raises(awoke.ConfigError, match="time zone"):
        awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers, start=datetime(2026, 1, 1))


@pytest.fixture
def busy_topic(cluster: Cluster, topic: CreateTopic) -> Iterator[str]:
    """A topic of two partitions that gets a message in each all the time, so that no fetch finds an end."""
    name, over = topic(partitions=2), threading.Event()
    with awoke.Producer(cluster.bootstrap_servers, kafka={"linger.ms": 0}) as producer, ThreadPoolExecutor(2) as others:

        def send(partition: int) -> None:
            while not over.is_set():
                producer.produce(name, b"value", partition=partition).wait(30)

        awoke.wait_all([producer.produce(name, b"first", partition=each) for each in range(2)], 30)
        sending = [others.submit(send, partition) for partition in range(2)]
        yield name
        over.set()
        for each in sending:
            each.result(30)


def test_a_busy_topic_is_read_to_its_end(cluster: Cluster, busy_topic: str) -> None:
    with reading(cluster, busy_topic) as reader:
        first = [message for message in reader.read_until_end(30) if message.value == b"first"]
        assert sorted((each.partition, each.offset) for each in first) == [(0, 0), (1, 0)]
        again = list[int]()
        while not again:  # There may be no new message yet. The test has a time-out.
            again = [message.offset for message in reader.read_until_end(30)]
    assert min(again) > 0, "the second reading goes on where the first one has ended"


def test_a_further_reading_yields_what_came_after_the_end(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic(partitions=2)
    with (
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
        reading(cluster, name) as reader,
    ):
        assert list(reader.read_until_end(30)) == []
        assert list(reader.read_until_end(30)) == []
        for value in (b"1", b"2"):
            producer.produce(name, value).wait(30)
            found = list[bytes | None]()
            while not found:  # Until it is fetched; the test has a time-out.
                found = [message.value for message in reader.read_until_end(30)]
            assert found == [value]


async def test_a_reader_is_iterated_on_an_event_loop(cluster: Cluster, topic: CreateTopic) -> None:
    name, seen = topic(), []
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        await producer.produce(name, b"0")  # Before the reader, which may find the end while it is being opened.
    with (
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer,
        reading(cluster, name) as reader,
    ):
        async for message in reader.aread_until_end(30):
            seen.append(message.value)
        assert seen == [b"0"]

        async def send_later() -> None:
            await producer.produce(name, b"1")

        sending = asyncio.create_task(send_later())
        async for message in reader:
            seen.append(message.value)
            break
        await sending
    assert seen == [b"0", b"1"]


def native_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_messages_that_are_kept_keep_no_client(mock_cluster: Cluster) -> None:
    name = unique("topic")
    mock_cluster.create_topic(name)
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all([producer.produce(name, b"value", key=b"key") for _ in range(3)], 30)
    before = native_threads()
    with reading(mock_cluster, name) as reader:
        kept = list(reader.read_until_end(30))
        while_open = native_threads()
    assert before < while_open
    wait_until(lambda: native_threads() <= before, "the client's threads have ended", 5, every_s=0.01)
    assert [(each.key, each.value, each.offset) for each in kept] == [(b"key", b"value", offset) for offset in range(3)]


def test_a_reader_that_is_closed_says_so(cluster: Cluster, topic: CreateTopic) -> None:
    reader = awoke.Reader(topic(), bootstrap_servers=cluster.bootstrap_servers)
    reader.close()
    with pytest.raises(awoke.ClosedError):
        next(iter(reader))


def test_calls_that_have_no_answer_fail_when_the_admin_closes() -> None:
    admin = awoke.Admin("127.0.0.1:1")
    call = admin._connection._native.request("create_topics", [("x", 1, 1, [])], 60)
    assert not call.done()
    admin.close()
    with pytest.raises(awoke.ClosedError):
        call.wait()
