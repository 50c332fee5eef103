"""Producing: handles, errors, bounds."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

import awoke
from awoke.testing import EmbeddedCluster
from tests.support.clusters import Cluster
from tests.support.waiting import Collected, elapse, stays_so

CreateTopic = Callable[..., str]


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[awoke.Producer]:
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        yield producer


def test_a_handle_says_where_the_message_went(producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()
    first, second = (producer.produce(name, b"value").wait(30) for _ in range(2))
    assert (first.topic, first.partition) == (name, 0)
    assert second.offset == first.offset + 1


async def test_an_awaited_handle_resolves_on_the_acknowledgement(producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()
    deliveries = await asyncio.gather(*(producer.produce(name, str(number)) for number in range(100)))
    assert sorted(delivery.offset for delivery in deliveries) == list(range(100))
    assert (await producer.produce(name, b"alone")).offset == 100


async def test_a_busy_event_loop_delays_no_other_waiter(producer: awoke.Producer, topic: CreateTopic) -> None:
    name, seen = topic(), threading.Event()
    for _ in range(20):
        # From here on the loop would serve the reports, but it is blocked.
        task = asyncio.ensure_future(producer.produce(name, b"of a task"))
        await asyncio.sleep(0)
        producer.produce(name, b"with a callback").add_done_callback(lambda _: seen.set())
        assert seen.wait(30)
        seen.clear()
        await task


async def test_tasks_of_two_event_loops_await_handles(producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()

    async def send() -> list[int]:
        return [(await producer.produce(name, b"value")).offset for _ in range(200)]

    here, there = await asyncio.gather(send(), asyncio.to_thread(asyncio.run, send()))
    assert sorted(here + there) == list(range(400))


async def test_a_task_that_is_cancelled_leaves_the_reports_to_others(
    producer: awoke.Producer, topic: CreateTopic
) -> None:
    name = topic()
    for _ in range(20):
        task = asyncio.ensure_future(producer.produce(name, b"of a task"))
        await asyncio.sleep(0)
        task.cancel()
        assert (await producer.produce(name, b"after it")).topic == name
    assert producer.flush(30)


def test_every_part_of_a_message_arrives(producer: awoke.Producer, topic: CreateTopic, cluster: Cluster) -> None:
    name = topic(partitions=3)
    headers = [("trace", b"1"), ("trace", None), ("kind", "text")]
    producer.produce(name, {"n": 1}, key="k", headers=headers, partition=2, timestamp_ms=1_700_000_000_000).wait(30)
    producer.produce(name, None, key=b"gone", partition=2).wait(30)
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
        full, tombstone = reader.read_until_end(30)
    assert (full.value, full.key, full.partition, full.offset) == (b'{"n":1}', b"k", 2, 0)
    assert full.headers == [("trace", b"1"), ("trace", None), ("kind", b"text")]
    assert full.timestamp_ms == 1_700_000_000_000
    assert (tombstone.value, tombstone.key, tombstone.value_buffer) == (None, b"gone", None)
    assert full.value_buffer is not None
    assert bytes(full.value_buffer) == b'{"n":1}'
    assert full.value_buffer.readonly


def test_produce_many_takes_values_pairs_and_records(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    name = topic()
    messages = [b"value", (b"value", "key"), awoke.Record(b"value", key="k", headers={"h": b"1"})]
    awoke.wait_all(producer.produce_many(name, messages), 10)
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
        found = list(reader.read_until_end(30))
    assert [message.key for message in found] == [None, b"key", b"k"]
    assert found[2].headers == [("h", b"1")]


def test_produce_many_keeps_the_order_of_whatever_it_is_given(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    # Given messages of all kinds in one list, more than go to librdkafka at once
    name = topic(partitions=1)
    kinds: list[Callable[[bytes], Any]] = [
        lambda value: value,
        lambda value: (value, b"key"),
        lambda value: awoke.Record(value, partition=0),
        lambda value: awoke.Record(value, timestamp_ms=1_700_000_000_000),
        lambda value: awoke.Record(value, headers=[("h", value)]),
        lambda value: (None, value),
    ]
    messages = [kinds[number // 7 % len(kinds)](b"%d" % number) for number in range(2_000)]

    # When they are sent
    found = awoke.wait_all(producer.produce_many(name, messages), 30)

    # Then each handle is that of its message, and all are there in their order
    assert [delivery.offset for delivery in found] == list(range(2_000))
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
        numbers = [int(message.value or message.key or b"") for message in reader.read_until_end(30)]
    assert numbers == list(range(2_000))


class Point(NamedTuple):
    """A value that is a tuple."""

    x: int
    y: int


def test_produce_many_takes_a_tuple_of_ones_own_for_a_value(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    name = topic(partitions=1)
    awoke.wait_all(producer.produce_many(name, [Point(1, 2), (Point(3, 4), "key")]), 30)
    with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
        assert [(message.value, message.key) for message in reader.read_until_end(30)] == [
            (b"[1,2]", None),
            (b"[3,4]", b"key"),
        ]


def test_produce_many_sends_what_comes_before_what_it_refuses(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    for refused, error in (
        (b"x" * 2_000_000, awoke.MessageTooLarge),
        (object(), awoke.EncodeError),
        ((1, 2, 3), TypeError),
    ):
        name = topic(partitions=1)
        with pytest.raises(error):
            producer.produce_many(name, [*[b"x"] * 300, refused, *[b"y"] * 300])
        assert producer.flush(30)
        with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
            assert [message.value for message in reader.read_until_end(30)] == [b"x"] * 300


def test_produce_many_sends_what_a_generator_gives_when_it_does(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    name = topic(partitions=1)

    def messages() -> Iterator[bytes]:
        yield b"first"
        assert producer.flush(30)
        with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
            assert [message.value for message in reader.read_until_end(30)] == [b"first"]
        yield b"second"

    first, second = awoke.wait_all(producer.produce_many(name, messages()), 30)
    assert (first.offset, second.offset) == (0, 1)


def test_produce_many_waits_for_room(topic: CreateTopic, cluster: Cluster) -> None:
    name = topic(partitions=1)
    with awoke.Producer(
        cluster.bootstrap_servers, kafka={"queue.buffering.max.messages": 100, "linger.ms": 60_000}
    ) as narrow:
        # Given a full queue: no thread waits, so its messages linger
        with pytest.raises(awoke.QueueFull):
            narrow.produce_many(name, [b"x"] * 101, timeout_s=0)
        assert narrow.queued()[0] == 100
        assert narrow.flush(30)

    with awoke.Producer(cluster.bootstrap_servers, kafka={"queue.buffering.max.messages": 100}) as narrow:
        # Then more than there is room for is sent all the same
        found = awoke.wait_all(narrow.produce_many(name, [b"x"] * 5_000), 30)
    assert [delivery.offset for delivery in found] == list(range(100, 5_100))


def test_callbacks_run_on_a_thread_of_awokes(producer: awoke.Producer, topic: CreateTopic) -> None:
    called: Collected[tuple[str, bool]] = Collected()
    handle = producer.produce(topic(), b"value")
    handle.add_done_callback(lambda done: called.add((threading.current_thread().name, done.done())))
    assert called.wait_for(1) == [("awoke-callbacks", True)]
    handle.add_done_callback(lambda done: called.add(("again", done.exception() is None)))
    assert called.wait_for(2)[1] == ("again", True)


def test_waiting_from_many_threads_wakes_each(producer: awoke.Producer, topic: CreateTopic) -> None:
    name, offsets = topic(), Collected[int]()

    def send() -> None:
        for _ in range(20):
            offsets.add(producer.produce(name, b"value").wait(30).offset)

    threads = [threading.Thread(target=send) for _ in range(10)]
    for thread in threads:
        thread.start()
    assert sorted(offsets.wait_for(200)) == list(range(200))
    for thread in threads:
        thread.join()


def test_handles_that_are_dropped_leave_nothing_queued(producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()
    for _ in range(1_000):
        producer.produce(name, b"value")
    assert producer.flush(10)
    assert producer.queued() == (0, 0)


def test_a_message_that_is_too_large_is_refused_at_once(producer: awoke.Producer, topic: CreateTopic) -> None:
    with pytest.raises(awoke.MessageTooLarge, match="too large") as refused:
        producer.produce(topic(), b"x" * 2_000_000)
    assert refused.value.size_bytes == 2_000_000
    assert producer.queued() == (0, 0)


def test_a_topic_that_does_not_exist_fails_the_delivery(real_cluster: Cluster) -> None:
    # Embedded brokers create it, as Kafka does by default; these brokers create none.
    with awoke.Producer(real_cluster.bootstrap_servers, kafka={"topic.metadata.propagation.max.ms": 100}) as producer:
        handle = producer.produce("no-such-topic", b"value")
        with pytest.raises(awoke.DeliveryFailed, match="no-such-topic"):
            handle.wait(30)
        assert isinstance(handle.exception(), awoke.DeliveryFailed)


def test_a_value_that_cannot_be_encoded_is_refused(producer: awoke.Producer, topic: CreateTopic) -> None:
    with pytest.raises(awoke.EncodeError, match="object"):
        producer.produce(topic(), object())
    with pytest.raises(TypeError, match="key"):
        producer.produce(topic(), b"value", key=3)


def test_a_closed_producer_says_so(cluster: Cluster, topic: CreateTopic) -> None:
    producer = awoke.Producer(cluster.bootstrap_servers)
    assert producer.close(5) == 0
    assert producer.close(5) == 0
    with pytest.raises(awoke.ClosedError, match="producer is closed"):
        producer.produce(topic(), b"value")


@pytest.fixture
def silent_broker() -> Iterator[EmbeddedCluster]:
    """A broker that takes connections no more."""
    with EmbeddedCluster() as cluster:
        cluster.create_topic("topic")
        cluster.set_broker_up(1, False)
        yield cluster


def test_a_wait_without_an_answer_names_the_operation_and_the_time(silent_broker: EmbeddedCluster) -> None:
    producer = awoke.Producer(silent_broker.bootstrap_servers)
    handle = producer.produce("topic", b"value")
    with pytest.raises(awoke.DeliveryTimeout, match=r"produce to topic: no answer within 0\.\d+ s") as late:
        handle.wait(0.05)
    assert late.value.operation == "produce to topic"
    assert "may still" in str(late.value)
    with pytest.raises(awoke.DeliveryTimeout, match="1 had no answer"):
        awoke.wait_all([handle], 0.05)
    assert producer.close(0.1) == 1
    with pytest.raises(awoke.DeliveryFailed, match="PURGE"):
        handle.wait(5)


def test_a_report_queued_before_the_callback_is_enabled_is_seen() -> None:
    for _ in range(20):  # A connection may be refused before or after the report thread enables its callback.
        with EmbeddedCluster() as cluster:
            cluster.create_topic("topic")
            cluster.set_broker_up(1, False)
            with awoke.Producer(cluster.bootstrap_servers) as producer:
                answered = threading.Event()
                handle = producer.produce("topic", b"value")
                handle.add_done_callback(lambda _, answered=answered: answered.set())  # type: ignore[misc]
                cluster.set_broker_up(1, True)
                assert answered.wait(20), "no thread reads its report"


def test_a_full_queue_refuses_or_waits(silent_broker: EmbeddedCluster) -> None:
    kafka = {"queue.buffering.max.messages": 2}
    producer = awoke.Producer(silent_broker.bootstrap_servers, kafka=kafka)
    handles = [producer.produce("topic", b"value") for _ in range(2)]
    with pytest.raises(awoke.QueueFull, match="2 messages"):
        producer.produce("topic", b"value", timeout_s=0)
    waiting = threading.Thread(target=lambda: handles.append(producer.produce("topic", b"value", timeout_s=30)))
    waiting.start()
    silent_broker.set_broker_up(1, True)
    waiting.join(30)
    assert len(awoke.wait_all(handles, 30)) == 3
    producer.close(5)


def test_a_message_that_is_never_acknowledged_fails_in_time(silent_broker: EmbeddedCluster) -> None:
    with awoke.Producer(silent_broker.bootstrap_servers, kafka={"delivery.timeout.ms": 1_000}) as producer:
        with pytest.raises(awoke.DeliveryFailed) as failed:
            producer.produce("topic", b"value").wait()
        assert failed.value.code_name == "_MSG_TIMED_OUT"
        assert failed.value.is_retriable


@pytest.mark.parametrize(("name", "value"), [("linger.msec", "5"), ("acks", "some"), ("plugin.library.paths", "x.so")])
def test_a_wrong_property_is_named(name: str, value: str) -> None:
    with pytest.raises(awoke.ConfigError, match=name) as refused:
        awoke.Producer("127.0.0.1:1", kafka={name: value})
    assert refused.value.property == name


@pytest.mark.parametrize(("key", "hash_java"), [("kafka", 0x5067CF64), ("giberish123456789", 0x0F552B0C)])
def test_keys_go_where_javas_clients_put_them(cluster: Cluster, topic: CreateTopic, key: str, hash_java: int) -> None:
    name = topic(partitions=5)
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        assert producer.produce(name, b"value", key=key).wait(20).partition == hash_java % 5


LINGER = {"linger.ms": 60_000}


def test_a_wait_for_a_delivery_ends_the_linger(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=LINGER) as producer:
        assert producer.produce(name, b"0").wait(20).offset == 0
        handles = [producer.produce(name, b"value") for _ in range(10)]
        assert [each.offset for each in awoke.wait_all(handles, 20)] == list(range(1, 11))
        with ThreadPoolExecutor(4) as pool:
            waits = [pool.submit(lambda: producer.produce(name, b"value").wait(20).offset) for _ in range(40)]
            assert sorted(wait.result() for wait in waits) == list(range(11, 51))


async def test_an_awaited_delivery_ends_the_linger(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=LINGER) as producer:
        assert (await producer.produce(name, b"0")).offset == 0
        async with asyncio.timeout(20):
            found = await asyncio.gather(*(resolve(producer.produce(name, b"value")) for _ in range(100)))
    assert sorted(each.offset for each in found) == list(range(1, 101))


async def resolve(handle: awoke.DeliveryHandle) -> awoke.Delivery:
    """Awaits a handle: `gather` takes coroutines."""
    return await handle


def test_a_message_without_a_waiter_lingers(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=LINGER) as producer:
        producer.produce(name, b"0").wait(20)
        elapse(0.1, "a message that comes at the very end of an early flush may go with it, which does no harm")
        handle = producer.produce(name, b"1")
        stays_so(lambda: not handle.done(), "the message lingers", for_s=0.3)
        assert handle.wait(20).offset == 1


def test_a_wait_ends_the_linger_of_its_own_partition_only(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic(partitions=2)
    with awoke.Producer(cluster.bootstrap_servers, kafka=LINGER) as producer:
        for partition in range(2):
            producer.produce(name, b"first", partition=partition).wait(20)
        lingers = producer.produce(name, b"second", partition=0)
        goes_along = producer.produce(name, b"second", partition=1)
        assert producer.produce(name, b"third", partition=1).wait(20).offset == 2
        assert goes_along.result().offset == 1
        stays_so(lambda: not lingers.done(), "the message of the other partition lingers", for_s=0.3)
        assert lingers.wait(20).offset == 1


def test_messages_linger_again_when_a_wait_has_timed_out(cluster: Cluster, topic: CreateTopic) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=LINGER) as producer:
        producer.produce(name, b"0").wait(20)
        with contextlib.suppress(awoke.DeliveryTimeout):
            producer.produce(name, b"1").wait(0)
        elapse(0.1, "a message that comes while the broker's thread looks may go along, which does no harm")
        handle = producer.produce(name, b"2")
        stays_so(lambda: not handle.done(), "the message lingers", for_s=0.3)
        assert handle.wait(20).offset == 2
