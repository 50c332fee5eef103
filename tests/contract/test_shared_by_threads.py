"""Many threads share one object: nothing is lost, doubled or mixed up, with the GIL and without it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import awoke
from awoke import rpc
from awoke.testing import running
from tests.contract.test_consume import new_app
from tests.support.clusters import MockCluster, read_all, reading, unique
from tests.support.waiting import Collected

THREADS = 8
WITHIN_S = 60.0


class Order(msgspec.Struct):
    id: int


@pytest.fixture(autouse=True)
def changes_threads_often() -> Iterator[None]:
    """With the GIL, the interpreter goes to another thread a hundred times as often."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before_s)


@pytest.fixture
def topic(mock_cluster: MockCluster) -> str:
    name = unique("topic")
    mock_cluster.create_topic(name, 2)
    return name


def together(work: Callable[[int], Any]) -> list[Any]:
    """Calls a function with 0, 1, … on as many threads, which begin at once. Returns the results; raises an error."""
    barrier = threading.Barrier(THREADS)

    def run(number: int) -> Any:
        barrier.wait(WITHIN_S)
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(run, range(THREADS)))


def test_a_producer_and_its_handles(mock_cluster: MockCluster, topic: str) -> None:
    called = Collected[awoke.DeliveryHandle]()

    def send(number: int) -> list[awoke.Delivery]:
        found = [producer.produce(topic, Order(number), key=str(number)).wait(WITHIN_S) for _ in range(50)]
        handles = producer.produce_many(topic, [(b"value", str(number))] * 300)
        handles[-1].add_done_callback(called.add)
        return found + awoke.wait_all(handles, WITHIN_S)

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        deliveries = [each for found in together(send) for each in found]
        assert len(set(deliveries)) == THREADS * 350
        assert len(set(map(id, called.wait_for(THREADS)))) == THREADS
        assert producer.queued() == (0, 0)


def test_one_handle_that_all_wait_for(mock_cluster: MockCluster, topic: str) -> None:
    def wait(number: int) -> list[awoke.Delivery]:
        if number % 2:
            return [each.wait(WITHIN_S) for each in handles]
        return asyncio.run(awaited())

    async def awaited() -> list[awoke.Delivery]:
        return list(await asyncio.gather(*handles))

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka={"linger.ms": 20}) as producer:
        handles = [producer.produce(topic, b"value") for _ in range(200)]
        assert together(wait) == [awoke.wait_all(handles)] * THREADS


def test_a_producer_that_closes_under_its_senders(mock_cluster: MockCluster, topic: str) -> None:
    sent = Collected[int]()

    def send(number: int) -> list[awoke.DeliveryHandle]:
        if number == 0:
            sent.wait_for(500)
            producer.close()
            return []
        handles = []
        try:
            while True:
                handles.append(producer.produce(topic, b"value"))
                sent.add(number)
        except awoke.ClosedError:
            return handles

    producer = awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties)
    handles = [each for found in together(send) for each in found]
    assert all(each.done() for each in handles)
    assert len(handles) >= 500
    with reading(mock_cluster, topic) as reader:
        delivered = sum(each.exception() is None for each in handles)
        assert sum(1 for _ in reader.read_until_end(WITHIN_S)) == delivered


def test_a_caller(mock_cluster: MockCluster) -> None:
    app = new_app(mock_cluster)

    @app.rpc.method
    def twice(number: int) -> int:
        return 2 * number

    @app.rpc.method
    async def thrice(number: int) -> int:
        return 3 * number

    def call(number: int) -> list[int]:
        if number % 2:
            return [caller.call("thrice", number=each, returns=int) for each in range(50)]
        pending = [caller.submit("twice", number=each, returns=int) for each in range(50)]
        return [each.wait(WITHIN_S) for each in pending]

    with running(app), rpc.Caller(app.name, mock_cluster.bootstrap_servers, timeout_s=WITHIN_S) as caller:
        caller.wait_until_served(WITHIN_S)
        results = together(call)
        assert caller.open_calls() == 0
    twos, threes = [2 * each for each in range(50)], [3 * each for each in range(50)]
    assert results == [threes if number % 2 else twos for number in range(THREADS)]


def test_messages_of_a_reader_that_closes(mock_cluster: MockCluster, topic: str) -> None:
    count = 300
    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        messages = [awoke.Record(f"value {each}", f"key {each}", {"n": str(each)}) for each in range(count)]
        awoke.wait_all(producer.produce_many(topic, messages), WITHIN_S)
    reader = reading(mock_cluster, topic)
    kept = list(reader.read_until_end(WITHIN_S))

    def read(number: int) -> set[tuple[Any, ...]]:
        if number == 0:
            reader.close()
        buffers = [each.value_buffer for each in kept]
        found = {(each.value, each.key, *each.headers) for each in kept}
        assert {bytes(each) for each in buffers if each is not None} == {value for value, *_ in found}
        return found

    expected = {(f"value {each}".encode(), f"key {each}".encode(), ("n", str(each).encode())) for each in range(count)}
    assert together(read) == [expected] * THREADS


def test_a_typed_batch_is_decoded_once(mock_cluster: MockCluster, topic: str) -> None:
    app, decoded = new_app(mock_cluster), Collected[list[list[Order]]]()

    @app.consumer(topic)
    class Orders(awoke.Consumer):
        def consume(self, batch: awoke.Batch[Order]) -> None:
            messages = list(batch)
            decoded.add(together(lambda _: [each.value for each in messages]))

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        awoke.wait_all(producer.produce_many(topic, [Order(each) for each in range(200)]), WITHIN_S)
    with running(app):
        batches = decoded.wait_until(lambda items: sum(len(each[0]) for each in items) == 200, WITHIN_S)
    for first, *others in batches:
        assert all(mine is yours for other in others for mine, yours in zip(first, other, strict=True))


def test_a_sequencer() -> None:
    log: list[tuple[int, int]] = []
    sequencer: awoke.Sequencer[tuple[int, int]] = awoke.Sequencer(log.extend, 64)

    def add(number: int) -> list[int]:
        voided = []
        for turn in range(300):
            with sequencer.claim(WITHIN_S) as permit:
                if turn % 10 == 9:
                    voided.append(permit.index)
                elif turn % 3:
                    permit.append((permit.index, number), WITHIN_S)
                else:
                    permit.deposit((permit.index, number))
        return voided

    voided = {index for found in together(add) for index in found}
    sequencer.wait_for(THREADS * 300, WITHIN_S)
    assert [index for index, _ in log] == [index for index in range(THREADS * 300) if index not in voided]
    for number in range(THREADS):
        assert sum(each == number for _, each in log) == 270


def test_an_app_whose_partitions_have_lanes(mock_cluster: MockCluster, topic: str) -> None:
    app, seen = new_app(mock_cluster, workers=THREADS), Collected[tuple[bytes, int]]()
    out = unique("out")
    mock_cluster.create_topic(out, 2)

    @app.on(topic, output=out, ordered=True, concurrency=awoke.by_key(THREADS))
    def forward(message: awoke.Message[bytes]) -> bytes:
        assert message.key is not None
        seen.add((message.key, int(message.value)))
        return message.value

    with awoke.Producer(mock_cluster.bootstrap_servers, kafka=mock_cluster.properties) as producer:
        messages = [(str(each), f"key {each % 20}") for each in range(2_000)]
        awoke.wait_all(producer.produce_many(topic, messages), WITHIN_S)
    with running(app):
        came = seen.wait_for(2_000, WITHIN_S)
    for key in {key for key, _ in came}:
        numbers = [number for each, number in came if each == key]
        assert numbers == sorted(set(numbers)), "of a key in order, each once"
    assert sorted(int(each.value or b"-1") for each in read_all(mock_cluster, out)) == list(range(2_000))
