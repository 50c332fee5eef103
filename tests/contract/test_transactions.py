"""Transactions of a producer, as readers of committed messages see them. The embedded brokers know none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

import awoke
from tests.support.clusters import Cluster, read_all, unique
from tests.support.waiting import Collected, ahang

CreateTopic = Callable[..., str]


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[awoke.Producer]:
    with awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id")) as producer:
        yield producer


def values(cluster: Cluster, topic: str) -> list[bytes]:
    """Returns the values that a reader of committed messages sees, in order."""
    return [message.value or b"" for message in read_all(cluster, topic)]


def test_a_transaction_is_seen_whole_or_not_at_all(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    orders, stock = topic("orders"), topic("stock")
    with producer.transaction() as t:
        first = t.produce(orders, {"sku": "A1"}, key="A1", headers={"h": b"1"})
        t.produce_many(stock, [b"-1", (b"-2", "key")])
        assert first.wait(30).offset == 0
        assert values(cluster, orders) == []  # It is there, and not seen.
    assert values(cluster, orders) == [b'{"sku":"A1"}']
    assert values(cluster, stock) == [b"-1", b"-2"]
    with pytest.raises(ZeroDivisionError), producer.transaction() as t:
        t.produce(orders, b"aborted").wait(30)
        t.produce(stock, b"aborted")
        raise ZeroDivisionError
    with producer.transaction() as t:
        t.produce(orders, b"after")
    assert values(cluster, orders) == [b'{"sku":"A1"}', b"after"]
    assert values(cluster, stock) == [b"-1", b"-2"]


def test_a_transaction_without_messages_costs_nothing(producer: awoke.Producer) -> None:
    with producer.transaction():
        pass
    with pytest.raises(ZeroDivisionError), producer.transaction():
        raise ZeroDivisionError


def test_what_was_not_sent_when_it_is_aborted_fails(producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()
    with pytest.raises(ZeroDivisionError), producer.transaction() as t:
        handles = t.produce_many(name, [b"x"] * 100)
        raise ZeroDivisionError
    assert all(handle.done() for handle in handles)


@pytest.mark.timeout(120)
def test_messages_that_an_abort_fails_make_room_in_their_own_producer(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as other:
        with pytest.raises(ZeroDivisionError), producer.transaction() as t:
            t.produce_many(name, [b"x"] * 100)
            raise ZeroDivisionError
        # The abort served the reports on this thread, which now serves those of another producer.
        for _ in range(2):
            other.produce(name, b"y", timeout_s=0)
            assert other.flush(30)


def test_one_that_fails_is_aborted_and_says_so(topic: CreateTopic, cluster: Cluster) -> None:
    name = topic()
    aborted = Collected[awoke.Event]()
    events = awoke.Events()
    events.subscribe("transaction.aborted", aborted.add)
    kafka = {"message.max.bytes": 10_000_000}  # More than the broker takes.
    with awoke.Producer(
        cluster.bootstrap_servers, transactional_id=unique("id"), kafka=kafka, events=events
    ) as producer:
        with pytest.raises(awoke.TransactionAborted) as caught, producer.transaction() as t:
            t.produce(name, b"small")
            t.produce(name, b"x" * 5_000_000)
        assert caught.value.code_name
        with producer.transaction() as t:
            t.produce(name, b"after")
    aborted.wait_for(1)
    assert values(cluster, name) == [b"after"]


def test_many_threads_take_turns(producer: awoke.Producer, topic: CreateTopic, cluster: Cluster) -> None:
    name = topic()

    def pair(number: int) -> None:
        with producer.transaction() as t:
            t.produce_many(name, [b"%d" % number] * 2)

    threads = [threading.Thread(target=pair, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = values(cluster, name)
    assert sorted(seen[::2]) == sorted(seen[1::2]) == sorted(b"%d" % number for number in range(20))
    assert seen[::2] == seen[1::2]  # No transaction stands within another.


async def test_tasks_take_turns_and_await(producer: awoke.Producer, topic: CreateTopic, cluster: Cluster) -> None:
    name = topic()

    async def one(number: int) -> None:
        async with producer.transaction() as t:
            await t.produce(name, b"%d" % number)
            if number % 2:
                raise ZeroDivisionError

    outcomes = await asyncio.gather(*(one(number) for number in range(20)), return_exceptions=True)
    assert [outcome is None for outcome in outcomes] == [number % 2 == 0 for number in range(20)]
    assert sorted(values(cluster, name)) == sorted(b"%d" % number for number in range(0, 20, 2))


async def test_a_task_that_is_cancelled_leaves_no_transaction_open(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    name, is_in = topic(), asyncio.Event()

    async def stay() -> None:
        async with producer.transaction() as t:
            t.produce(name, b"cancelled")
            is_in.set()
            await ahang()

    async def wait_for_turn() -> None:
        async with producer.transaction() as t:
            t.produce(name, b"never")

    staying = asyncio.create_task(stay())
    await is_in.wait()
    waiting = asyncio.create_task(wait_for_turn())
    await asyncio.sleep(0)
    waiting.cancel()
    staying.cancel()
    await asyncio.gather(staying, waiting, return_exceptions=True)
    async with producer.transaction() as t:
        t.produce(name, b"after")
    assert values(cluster, name) == [b"after"]


def test_a_newer_producer_fences_an_older_one(cluster: Cluster, topic: CreateTopic) -> None:
    name, identifier = topic(), unique("id")
    servers = cluster.bootstrap_servers
    with (
        awoke.Producer(servers, transactional_id=identifier) as older,
        awoke.Producer(servers, transactional_id=identifier) as newer,
    ):
        with pytest.raises(awoke.ProducerFenced), older.transaction() as t:
            t.produce(name, b"zombie").wait(30)
            with newer.transaction() as other:
                other.produce(name, b"newer")
        with pytest.raises(awoke.ProducerFenced), older.transaction() as t:
            t.produce(name, b"zombie")
        with newer.transaction() as other:
            other.produce(name, b"again")
    assert values(cluster, name) == [b"newer", b"again"]


def test_the_wait_for_a_turn_times_out(producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()
    with producer.transaction() as t:
        t.produce(name, b"x")
        with pytest.raises(awoke.OperationTimeout, match="begin a transaction"), producer.transaction(timeout_s=0.05):
            pass
    with producer.transaction() as t:
        t.produce(name, b"y")


def test_wrong_use_is_refused(cluster: Cluster, producer: awoke.Producer, topic: CreateTopic) -> None:
    name = topic()
    with pytest.raises(ValueError, match="within a transaction"):
        producer.produce(name, b"outside")
    transaction = producer.transaction()
    with pytest.raises(awoke.ClosedError, match="with block"):
        transaction.produce(name, b"before")
    with transaction:
        pass
    with pytest.raises(awoke.ClosedError):
        transaction.produce(name, b"after")
    with (
        awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as plain,
        pytest.raises(awoke.ConfigError, match="transactional_id"),
        plain.transaction(),
    ):
        pass
    with pytest.raises(awoke.ConfigError, match="transactional_id"):
        awoke.Producer(cluster.bootstrap_servers, kafka={"transactional.id": "x"})
    with pytest.raises(awoke.ConfigError):
        awoke.Producer(cluster.bootstrap_servers, transactional_id="")


def test_a_transaction_that_is_dropped_is_aborted(
    producer: awoke.Producer, topic: CreateTopic, cluster: Cluster
) -> None:
    name = topic()
    native = producer.begin()
    native.produce(name, awoke.Record(b"dropped"))
    del native
    with producer.transaction() as t:
        t.produce(name, b"after")
    assert values(cluster, name) == [b"after"]
    producer.begin().produce(name, awoke.Record(b"open when it closes"))
    producer.close()
    with pytest.raises(awoke.ClosedError), producer.transaction():
        pass
