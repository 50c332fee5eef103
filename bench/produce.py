"""Produces messages without waiting for each: messages per second, until all are acknowledged.

`BENCH_BYTES` and `BENCH_CODEC` of the environment say how large the values are, and how they are compressed.
"""

from __future__ import annotations

import os
import time
from typing import Any

from bench.harness import Job, Program, main, native, rate
from bench.report import Reference, Result

SLICE_MESSAGES = 10_000
WARM_UP_MESSAGES = 20
TIMEOUT_S = 300.0
# Contestants are separate processes, which get the size from the environment.
BYTES = int(os.environ.get("BENCH_BYTES", "100"))
CODEC = os.environ.get("BENCH_CODEC", "none")
VALUE = (b'{"sku": "A1", "quantity": 3, "price": 9.5, "text": "hello"}' * (BYTES // 50 + 1))[:BYTES]
# The same for all contestants, explicit so that no client uses its own default.
SETTINGS: dict[str, str | int] = {
    "linger.ms": 5,
    "acks": "all",
    "enable.idempotence": "false",
    "compression.type": CODEC,
}


def native_loop(job: Job) -> Result:
    """rd_kafka_produce in C, copying the value."""
    return rate(native("produce", job, SETTINGS)["seconds"], job.messages)


def awoke_produce(job: Job) -> Result:
    """A call of produce() for each message."""
    import awoke

    with awoke.Producer(job.bootstrap_servers, kafka=SETTINGS) as producer:
        awoke.wait_all([producer.produce(job.topic, VALUE) for _ in range(WARM_UP_MESSAGES)])
        produce = producer.produce
        first_s = time.monotonic()
        for _ in range(job.messages):
            produce(job.topic, VALUE)
        if not producer.flush(TIMEOUT_S):
            raise TimeoutError("not all messages were acknowledged")
        return rate(time.monotonic() - first_s, job.messages)


def awoke_produce_many(job: Job) -> Result:
    """A call of produce_many() for each ten thousand."""
    import awoke

    with awoke.Producer(job.bootstrap_servers, kafka=SETTINGS) as producer:
        awoke.wait_all([producer.produce(job.topic, VALUE) for _ in range(WARM_UP_MESSAGES)])
        first_s = time.monotonic()
        for begin in range(0, job.messages, SLICE_MESSAGES):
            producer.produce_many(job.topic, [VALUE] * min(SLICE_MESSAGES, job.messages - begin))
        if not producer.flush(TIMEOUT_S):
            raise TimeoutError("not all messages were acknowledged")
        return rate(time.monotonic() - first_s, job.messages)


def confluent_produce(job: Job) -> Result:
    """confluent-kafka's produce() without reports, with occasional polls: its fastest way."""
    return _confluent(job, has_reports=False)


def confluent_produce_reports(job: Job) -> Result:
    """confluent-kafka's produce() with on_delivery, which reports each message, as a handle does."""
    return _confluent(job, has_reports=True)


def _confluent(job: Job, *, has_reports: bool) -> Result:
    from confluent_kafka import Producer

    refused = 0

    def on_delivery(error: object, message: object) -> None:
        nonlocal refused
        refused += error is not None

    more: dict[str, Any] = {"on_delivery": on_delivery} if has_reports else {}
    producer = Producer({**SETTINGS, "bootstrap.servers": job.bootstrap_servers})
    for _ in range(WARM_UP_MESSAGES):
        producer.produce(job.topic, VALUE)
    producer.flush(TIMEOUT_S)
    produce, poll = producer.produce, producer.poll
    first_s = time.monotonic()
    for number in range(job.messages):
        while True:
            try:
                produce(job.topic, VALUE, **more)
                break
            except BufferError:
                poll(0.1)
        if number % 100 == 0:
            poll(0)
    if producer.flush(TIMEOUT_S) or refused:
        raise TimeoutError("not all messages were acknowledged")
    return rate(time.monotonic() - first_s, job.messages)


PROGRAM = Program(
    name="produce",
    title="Produce messages of 100 B without waiting for each",
    contestants={
        "native C loop": native_loop,
        "awoke produce()": awoke_produce,
        "awoke produce_many()": awoke_produce_many,
        "confluent-kafka produce()": confluent_produce,
        "confluent-kafka produce(on_delivery)": confluent_produce_reports,
    },
    messages=1_000_000,
    partitions=8,
    main="messages_per_s",
    is_higher_better=True,
    references=(
        Reference("native C", ("native C loop",)),
        Reference("confluent-kafka", ("confluent-kafka produce()",)),
        Reference("confluent-kafka on_delivery", ("confluent-kafka produce(on_delivery)",)),
    ),
    is_counted=True,
)

if __name__ == "__main__":
    main(PROGRAM)
