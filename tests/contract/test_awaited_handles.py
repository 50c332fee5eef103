"""A handle that a task awaits ends once: by a refusal, a time-out, a purge, or the close of its producer."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster, Faults

REFUSED = 1
"""Exit code of a forked child whose handle refuses it."""


@pytest.fixture
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("topic")
        yield cluster


async def outcome(handle: awoke.DeliveryHandle) -> str:
    """Awaits a handle; returns the name of its error."""
    with pytest.raises(awoke.DeliveryFailed) as failed:
        await asyncio.wait_for(asyncio.ensure_future(_delivery(handle)), 30)
    return failed.value.code_name


async def _delivery(handle: awoke.DeliveryHandle) -> awoke.Delivery:
    return await handle


async def test_a_refusal_of_the_broker_ends_the_wait_and_the_next_message_is_sent(brokers: EmbeddedCluster) -> None:
    with Faults(brokers, seed=1) as faults, awoke.Producer(brokers.bootstrap_servers) as producer:
        assert (await producer.produce("topic", b"value")).offset == 0
        faults.refuse_produce("topic", error="INVALID_RECORD")
        loop = asyncio.get_running_loop()
        called = loop.create_future()  # On another thread, perhaps after the wait has ended.
        handle = producer.produce("topic", b"value")
        handle.add_done_callback(lambda done: loop.call_soon_threadsafe(called.set_result, done))
        assert await outcome(handle) == "INVALID_RECORD"
        assert (await producer.produce("topic", b"value")).offset == 1
        async with asyncio.timeout(30):
            assert await called == handle


async def test_a_time_out_ends_the_wait(brokers: EmbeddedCluster) -> None:
    brokers.set_broker_up(1, False)
    with awoke.Producer(brokers.bootstrap_servers, kafka={"delivery.timeout.ms": 1_000}) as producer:
        assert await outcome(producer.produce("topic", b"value")) == "_MSG_TIMED_OUT"


async def test_closing_purges_what_many_tasks_await(brokers: EmbeddedCluster) -> None:
    brokers.set_broker_up(1, False)
    producer = awoke.Producer(brokers.bootstrap_servers)
    handles = [producer.produce("topic", b"value") for _ in range(20)]
    waits = [asyncio.ensure_future(outcome(handle)) for handle in handles]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(producer.close, 0.1) == 20
    assert set(await asyncio.gather(*waits)) <= {"_PURGE_QUEUE", "_PURGE_INFLIGHT"}


async def test_closing_delivers_what_a_task_awaits(brokers: EmbeddedCluster) -> None:
    producer = awoke.Producer(brokers.bootstrap_servers, kafka={"linger.ms": 60_000})
    waits = [asyncio.ensure_future(_delivery(producer.produce("topic", b"value"))) for _ in range(3)]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(producer.close, 30) == 0
    assert len(await asyncio.gather(*waits)) == 3


async def test_a_forked_child_can_not_await_and_its_parent_can(brokers: EmbeddedCluster) -> None:
    brokers.set_broker_up(1, False)
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        handle = producer.produce("topic", b"value")
        waiting = asyncio.ensure_future(_delivery(handle))
        await asyncio.sleep(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of threads at a fork.
            pid = os.fork()
        if pid == 0:
            try:
                handle.__await__()
            except awoke.ForkedClientError:
                os._exit(REFUSED)
            finally:
                os._exit(0)
        brokers.set_broker_up(1, True)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == REFUSED
        assert (await asyncio.wait_for(waiting, 30)).offset == 0
