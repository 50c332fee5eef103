"""Consumes small messages: messages per second that reach Python, in batches and one by one."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time

from bench.harness import Job, Program, main, native, rate
from bench.report import Reference, Result

BATCH_MESSAGES = 10_000
TIMEOUT_S = 300.0
# Rivals do not commit; awoke stores and commits offsets as always.
DEFAULT_RIVAL_SETTINGS = {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
# The same for every contestant on librdkafka. By default a partition whose queue is full is not fetched for a
# second, and a loop that is slower than the broker then stalls at a tenth of what it can do.
SETTINGS = {"auto.offset.reset": "earliest", "fetch.queue.backoff.ms": "10"}
RIVAL_SETTINGS = {**DEFAULT_RIVAL_SETTINGS, **SETTINGS}


class Clock:
    """The time from the first message to the last. Workers call its methods without a lock."""

    def __init__(self, messages: int) -> None:
        self.messages = messages
        self.first_s = 0.0
        self.last_s = 0.0
        self.ended = threading.Event()

    def result(self) -> Result:
        """Returns the messages per second, once the last message has come."""
        if not self.ended.wait(TIMEOUT_S):
            raise TimeoutError("not all messages arrived")
        return rate(self.last_s - self.first_s, self.messages)


def native_loop(job: Job) -> Result:
    """rd_kafka_consume_batch_queue in C."""
    seconds = native("consume", job, RIVAL_SETTINGS)["seconds"]
    return rate(seconds, job.messages)


def awoke_batch_values(job: Job) -> Result:
    """A consumer class that takes the values of each batch."""
    import awoke
    import awoke.testing

    app, clock = awoke.App("bench", group=job.group, kafka=SETTINGS), Clock(job.messages)
    lock, seen = threading.Lock(), 0

    @app.consumer(job.topic, batch=awoke.Batching(max_messages=BATCH_MESSAGES))
    class Values(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            nonlocal seen
            now_s = time.monotonic()
            values = batch.raw_values()
            with lock:
                clock.first_s = clock.first_s or now_s
                seen += len(values)
                if seen >= clock.messages and not clock.ended.is_set():
                    clock.last_s = time.monotonic()
                    clock.ended.set()

    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers):
        return clock.result()


def awoke_function(job: Job) -> Result:
    """A function that is called for each message."""
    import awoke
    import awoke.testing

    app, clock = awoke.App("bench", group=job.group, kafka=SETTINGS), Clock(job.messages)
    numbers, last = itertools.count(), job.messages - 1  # The count is exact: `next` is atomic under the GIL.

    @app.on(job.topic)
    def handle(message: awoke.Message[bytes]) -> None:
        message.value  # noqa: B018 (reading it is the work)
        number = next(numbers)
        if number == 0:
            clock.first_s = time.monotonic()
        if number == last:
            clock.last_s = time.monotonic()
            clock.ended.set()

    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers):
        return clock.result()


def awoke_async_function(job: Job) -> Result:
    """An `async def` function that is called for each message."""
    import awoke
    import awoke.testing

    app, clock = awoke.App("bench", group=job.group, kafka=SETTINGS), Clock(job.messages)
    numbers, last = itertools.count(), job.messages - 1

    @app.on(job.topic)
    async def handle(message: awoke.Message[bytes]) -> None:
        message.value  # noqa: B018 (reading it is the work)
        number = next(numbers)
        if number == 0:
            clock.first_s = time.monotonic()
        if number == last:
            clock.last_s = time.monotonic()
            clock.ended.set()

    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers):
        return clock.result()


def confluent_consume(job: Job) -> Result:
    """confluent-kafka's consume(), with a thousand messages per call."""
    return _confluent_consume(job, RIVAL_SETTINGS)


def confluent_consume_defaults(job: Job) -> Result:
    """The same with librdkafka's default settings, which stall; no reference."""
    return _confluent_consume(job, DEFAULT_RIVAL_SETTINGS)


def _confluent_consume(job: Job, given: dict[str, str]) -> Result:
    from confluent_kafka import Consumer

    settings = {**given, "bootstrap.servers": job.bootstrap_servers, "group.id": job.group}
    consumer = Consumer(settings)
    consumer.subscribe([job.topic])
    seen, first_s = 0, 0.0
    deadline_s = time.monotonic() + TIMEOUT_S
    while seen < job.messages:
        # Never more than are left: the call would wait out its timeout for them.
        messages = consumer.consume(min(1000, job.messages - seen), 0.1)
        if messages and not first_s:
            first_s = time.monotonic()
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
            message.value()
        seen += len(messages)
        if time.monotonic() > deadline_s:
            raise TimeoutError("not all messages arrived")
    result = rate(time.monotonic() - first_s, job.messages)
    consumer.close()
    return result


def confluent_poll(job: Job) -> Result:
    """confluent-kafka's poll(), one message at a time."""
    return _confluent_poll(job, RIVAL_SETTINGS)


def confluent_poll_defaults(job: Job) -> Result:
    """The same with librdkafka's default settings, which stall; no reference."""
    return _confluent_poll(job, DEFAULT_RIVAL_SETTINGS)


def _confluent_poll(job: Job, given: dict[str, str]) -> Result:
    from confluent_kafka import Consumer

    settings = {**given, "bootstrap.servers": job.bootstrap_servers, "group.id": job.group}
    consumer = Consumer(settings)
    consumer.subscribe([job.topic])
    seen, first_s, empty = 0, 0.0, 0
    while seen < job.messages:
        message = consumer.poll(1.0)
        if message is None:
            empty += 1
            if empty > TIMEOUT_S:
                raise TimeoutError("not all messages arrived")
            continue
        if message.error():
            raise RuntimeError(str(message.error()))
        if not first_s:
            first_s = time.monotonic()
        message.value()
        seen += 1
    result = rate(time.monotonic() - first_s, job.messages)
    consumer.close()
    return result


def aiokafka_getmany(job: Job) -> Result:
    """aiokafka's getmany()."""
    from aiokafka import AIOKafkaConsumer

    async def consume() -> Result:
        consumer = AIOKafkaConsumer(
            job.topic,
            bootstrap_servers=job.bootstrap_servers,
            group_id=job.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        seen, first_s = 0, 0.0
        while seen < job.messages:
            batches = await consumer.getmany(timeout_ms=1000, max_records=BATCH_MESSAGES)
            if batches and not first_s:
                first_s = time.monotonic()
            for messages in batches.values():
                for message in messages:
                    message.value  # noqa: B018 (reading it is the work)
                seen += len(messages)
        result = rate(time.monotonic() - first_s, job.messages)
        await consumer.stop()
        return result

    async def bounded() -> Result:
        return await asyncio.wait_for(consume(), TIMEOUT_S)

    return asyncio.run(bounded())


RIVALS = {
    "confluent-kafka consume(1000)": confluent_consume,
    "confluent-kafka poll()": confluent_poll,
    "aiokafka getmany()": aiokafka_getmany,
}
PROGRAM = Program(
    name="consume",
    title="Consume messages of 100 B from 8 partitions",
    contestants={
        "native C loop": native_loop,
        "awoke batch values": awoke_batch_values,
        "awoke function": awoke_function,
        "awoke async function": awoke_async_function,
        **RIVALS,
        "confluent consume(), defaults": confluent_consume_defaults,
        "confluent poll(), defaults": confluent_poll_defaults,
    },
    messages=1_000_000,
    partitions=8,
    main="messages_per_s",
    is_higher_better=True,
    references=(
        Reference("native C", ("native C loop",)),
        Reference("best rival", tuple(RIVALS)),
        Reference("confluent poll()", ("confluent-kafka poll()",)),
    ),
    is_filled=True,
)

if __name__ == "__main__":
    main(PROGRAM)
