"""Brokers go away, or do not answer, while messages are sent: every handle ends once and in time, and nothing hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

import awoke
from tests.support.clusters import MISSED_SOON, RealCluster, unique
from tests.support.kafka_proxy import ProxiedCluster
from tests.support.waiting import Collected

DELIVERY_TIMEOUT_S = 10.0
KAFKA = {
    "delivery.timeout.ms": int(DELIVERY_TIMEOUT_S * 1_000),
    "socket.timeout.ms": 1_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 200,
}
GRACE_S = 20.0
"""librdkafka looks for messages that are too old once a second."""


@pytest.fixture(scope="module")
def proxied() -> Iterator[ProxiedCluster]:
    with ProxiedCluster() as cluster:
        yield cluster


@pytest.fixture
def topic(proxied: ProxiedCluster) -> Iterator[str]:
    name = unique("faulty")
    with awoke.Admin(proxied.direct_servers) as admin:
        admin.create_topic(name, timeout_s=30)
    yield name
    proxied.proxy.black_hole(False)
    proxied.proxy.clear()


def values(cluster: ProxiedCluster, topic: str) -> list[bytes | None]:
    with awoke.Reader(topic, bootstrap_servers=cluster.direct_servers) as reader:
        return [message.value for message in reader.read_until_end(30)]


@pytest.mark.parametrize("action", ["cut", "cut_after"])
def test_a_message_that_is_sent_again_is_there_once(proxied: ProxiedCluster, topic: str, action: str) -> None:
    """Idempotence is on by default: what was there and not acknowledged is not there twice."""
    with awoke.Producer(proxied.bootstrap_servers, kafka={**KAFKA, "delivery.timeout.ms": 60_000}) as producer:
        producer.produce(topic, b"before").wait(30)
        rule = proxied.proxy.rule("Produce", action)  # type: ignore[arg-type]
        awoke.wait_all([producer.produce(topic, b"%d" % number) for number in range(100)], 70)
        assert rule.fired == 1
    assert values(proxied, topic) == [b"before", *(b"%d" % number for number in range(100))]


def test_handles_end_in_time_when_nothing_is_answered(proxied: ProxiedCluster, topic: str) -> None:
    ended: Collected[int] = Collected()
    with awoke.Producer(proxied.bootstrap_servers, kafka=KAFKA) as producer:
        producer.produce(topic, b"before").wait(30)
        proxied.proxy.black_hole(True)
        began_s = time.monotonic()
        waits: Collected[BaseException | None] = Collected()

        def wait(handle: awoke.DeliveryHandle) -> None:
            try:
                handle.wait()
            except awoke.AwokeError as error:
                waits.add(error)

        async def await_all(handles: list[awoke.DeliveryHandle]) -> list[object]:
            return await asyncio.gather(*handles, return_exceptions=True)

        handles = [producer.produce(topic, b"%d" % number) for number in range(300)]
        for number, handle in enumerate(handles):
            handle.add_done_callback(lambda _, number=number: ended.add(number))  # type: ignore[misc]
        threads = [threading.Thread(target=wait, args=(handle,)) for handle in handles[:20]]
        for thread in threads:
            thread.start()
        answers = asyncio.run(await_all(handles[20:200]))
        for thread in threads:
            thread.join(GRACE_S)
        assert time.monotonic() - began_s < DELIVERY_TIMEOUT_S + GRACE_S
        assert not any(thread.is_alive() for thread in threads)
        for error in [*waits.items, *answers]:
            assert isinstance(error, awoke.DeliveryFailed)
            assert error.code_name == "_MSG_TIMED_OUT"
            assert error.is_retriable
        assert Counter(ended.wait_for(300)) == Counter(range(300)), "each handle ends once"
        proxied.proxy.black_hole(False)
        proxied.proxy.cut_all()
        producer.produce(topic, b"after").wait(30)


def test_close_hangs_on_nothing(proxied: ProxiedCluster, topic: str) -> None:
    producer = awoke.Producer(proxied.bootstrap_servers, kafka={**KAFKA, "delivery.timeout.ms": 60_000})
    producer.produce(topic, b"before").wait(30)
    proxied.proxy.black_hole(True)
    handles = [producer.produce(topic, b"x") for _ in range(50)]
    failed: Collected[BaseException] = Collected()

    def wait() -> None:
        try:
            handles[-1].wait()
        except awoke.AwokeError as error:
            failed.add(error)

    thread = threading.Thread(target=wait)
    thread.start()
    began_s = time.monotonic()
    assert producer.close(timeout_s=1.0) == 50
    assert time.monotonic() - began_s < 1.0 + GRACE_S
    thread.join(GRACE_S)
    assert all(handle.done() for handle in handles)
    (error,) = failed.items
    assert isinstance(error, awoke.DeliveryFailed)
    with pytest.raises(awoke.ClosedError):
        producer.produce(topic, b"x")


def test_a_broker_that_is_killed_while_threads_send() -> None:
    """Each acknowledged message is there once, in its thread's order; each refused one has its error."""
    cluster = RealCluster(kafka=MISSED_SOON)
    try:
        name = unique("killed")
        cluster.create_topic(name)
        acknowledged: Collected[bytes] = Collected()
        stop = threading.Event()

        def send(thread: int, producer: awoke.Producer) -> None:
            number = 0
            while not stop.is_set():
                value = b"%d-%d" % (thread, number)
                try:
                    producer.produce(name, value).wait()
                except awoke.DeliveryFailed:
                    pass  # It may be there all the same.
                else:
                    acknowledged.add(value)
                number += 1

        with awoke.Producer(cluster.bootstrap_servers, kafka={**KAFKA, "delivery.timeout.ms": 30_000}) as producer:
            threads = [threading.Thread(target=send, args=(number, producer)) for number in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(2):
                acknowledged.wait_for(len(acknowledged.items) + 200)
                cluster.kafka.kill_broker(1)
                cluster.kafka.start_broker(1)
            acknowledged.wait_for(len(acknowledged.items) + 200, 60)
            stop.set()
            for thread in threads:
                thread.join(40)
            assert not any(thread.is_alive() for thread in threads)
        with awoke.Reader(name, bootstrap_servers=cluster.bootstrap_servers) as reader:
            seen = [message.value or b"" for message in reader.read_until_end(30)]
        assert set(acknowledged.items) <= set(seen)
        assert max(Counter(seen).values()) == 1
        for thread_number in range(4):
            mine = [int(value.split(b"-")[1]) for value in seen if value.startswith(b"%d-" % thread_number)]
            assert mine == sorted(mine)
    finally:
        cluster.close()
