"""Produces and waits, one message after the other: the time of all, and the delay of the waiting thread."""

from __future__ import annotations

import asyncio
import time

import awoke
from bench.harness import VALUE, Job, Program, main, native
from bench.report import Reference, Result, latency

WARM_UP_MESSAGES = 20
TIMEOUT_S = 60.0
SETTINGS: dict[str, str | int] = {"acks": "all", "enable.idempotence": "false"}
NO_LINGER: dict[str, str | int] = {**SETTINGS, "linger.ms": 0}


def seconds(total_s: float, messages: int) -> dict[str, float]:
    """Returns the seconds for all, and the milliseconds for each."""
    return {"seconds": total_s, "each_ms": total_s / messages * 1e3}


def native_no_linger(job: Job) -> Result:
    """C, linger 0, polling for its own report."""
    return seconds(native("sync-produce", job, NO_LINGER)["seconds"], job.messages)


def awoke_default(job: Job) -> Result:
    """wait() under the default linger of 5 ms."""
    return _awoke(job, SETTINGS)


def awoke_no_linger(job: Job) -> Result:
    """wait() with linger.ms=0."""
    return _awoke(job, NO_LINGER)


def _awoke(job: Job, settings: dict[str, str | int]) -> Result:
    with awoke.Producer(job.bootstrap_servers, kafka=settings) as producer:
        for _ in range(WARM_UP_MESSAGES):
            producer.produce(job.topic, VALUE).wait(TIMEOUT_S)
        first_s = time.monotonic()
        for _ in range(job.messages):
            producer.produce(job.topic, VALUE).wait(TIMEOUT_S)
        result = seconds(time.monotonic() - first_s, job.messages)
        delays_ns = _delays_ns(producer, job)
    return result | latency("woken", delays_ns) if delays_ns else result


def _delays_ns(producer: awoke.Producer, job: Job) -> list[int]:
    """Measures the time from each report to the waiting thread, in a second run: clock reads are no part of sending."""
    delays_ns = []
    for _ in range(job.messages):
        handle = producer.produce(job.topic, VALUE)
        handle.wait(TIMEOUT_S)
        now_ns = time.monotonic_ns()
        if handle.woken_at_ns:  # 0: the report was there before the wait.
            delays_ns.append(now_ns - handle.woken_at_ns)
    return delays_ns


def confluent_flush(job: Job) -> Result:
    """confluent-kafka's produce() and flush() under the default linger, which flush() cuts short."""
    return _confluent(job, SETTINGS)


def confluent_flush_no_linger(job: Job) -> Result:
    """confluent-kafka's produce() and flush() with linger.ms=0."""
    return _confluent(job, NO_LINGER)


def _confluent(job: Job, settings: dict[str, str | int]) -> Result:
    from confluent_kafka import Producer

    producer = Producer({**settings, "bootstrap.servers": job.bootstrap_servers})
    first_s = 0.0
    for number in range(WARM_UP_MESSAGES + job.messages):
        if number == WARM_UP_MESSAGES:
            first_s = time.monotonic()
        producer.produce(job.topic, VALUE)
        if producer.flush(TIMEOUT_S):
            raise TimeoutError("a message was not acknowledged")
    return seconds(time.monotonic() - first_s, job.messages)


def aiokafka_send_and_wait(job: Job) -> Result:
    """aiokafka's send_and_wait(), whose default is linger 0."""
    from aiokafka import AIOKafkaProducer

    async def produce() -> Result:
        async with AIOKafkaProducer(bootstrap_servers=job.bootstrap_servers, acks="all") as producer:
            for _ in range(WARM_UP_MESSAGES):
                await producer.send_and_wait(job.topic, VALUE)
            first_s = time.monotonic()
            for _ in range(job.messages):
                await producer.send_and_wait(job.topic, VALUE)
            return seconds(time.monotonic() - first_s, job.messages)

    return asyncio.run(produce())


PROGRAM = Program(
    name="sync_produce",
    title="Produce messages of 100 B, waiting for each; woken: from delivery report to the waiter running",
    contestants={
        "native C, linger 0": native_no_linger,
        "awoke wait(), default linger": awoke_default,
        "awoke wait(), linger 0": awoke_no_linger,
        "confluent-kafka flush(), default linger": confluent_flush,
        "confluent-kafka flush(), linger 0": confluent_flush_no_linger,
        "aiokafka send_and_wait()": aiokafka_send_and_wait,
    },
    messages=1_000,
    partitions=1,
    main="seconds",
    is_higher_better=False,
    references=(
        Reference("native C", ("native C, linger 0",)),
        Reference("aiokafka", ("aiokafka send_and_wait()",)),
    ),
    is_counted=True,
)

if __name__ == "__main__":
    main(PROGRAM)
