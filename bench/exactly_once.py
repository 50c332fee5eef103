"""The cost of exactly-once: a function's results are sent with its offsets in one transaction, and at least once."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.harness import Job, Program, Result, create_topic, delete_topic, main, rate
from bench.report import Reference
from tests.support.waiting import wait_until

PARTITIONS = 8
TIMEOUT_S = 300.0
COMMIT_INTERVAL_S = 0.1  # Kafka Streams' default.


def awoke_function(job: Job, *, exactly_once: bool, jobs: int = 0) -> Result:
    """A function that returns its argument, until all results have arrived and all offsets are stored."""
    import awoke
    import awoke.testing

    output = create_topic(job.bootstrap_servers, PARTITIONS)
    app = awoke.App("bench", group=job.group, kafka={"compression.type": "none"})
    began: list[float] = []

    def copy(message: awoke.Message[bytes]) -> bytes:
        if not began:
            began.append(time.perf_counter())
        return message.value

    concurrency = awoke.unordered(jobs) if jobs else None
    app.on(job.topic, output=output, exactly_once=exactly_once, concurrency=concurrency)(copy)
    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers) as server:

        def ended() -> int:
            return sum((each.committed if exactly_once else each.stored) or 0 for each in server.partitions())

        # No event tells that an offset is stored.
        wait_until(lambda: ended() >= job.messages, "all messages are done", TIMEOUT_S, every_s=0.001)
        seconds = time.perf_counter() - began[0]
    delete_topic(job.bootstrap_servers, output)
    return rate(seconds, job.messages)


def awoke_at_least_once(job: Job) -> Result:
    return awoke_function(job, exactly_once=False)


def awoke_exactly_once(job: Job) -> Result:
    return awoke_function(job, exactly_once=True)


def awoke_exactly_once_lanes(job: Job) -> Result:
    return awoke_function(job, exactly_once=True, jobs=4)


def confluent_exactly_once(job: Job) -> Result:
    """A loop written by hand: consume, produce, and every 100 ms offsets and commit."""
    from confluent_kafka import Consumer, Producer

    output = create_topic(job.bootstrap_servers, PARTITIONS)
    settings = {"bootstrap.servers": job.bootstrap_servers}
    consumer = Consumer(
        {
            **settings,
            "group.id": job.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    producer = Producer({**settings, "transactional.id": job.group})
    producer.init_transactions()
    consumer.subscribe([job.topic])
    seen, first_s, commit_s = 0, 0.0, 0.0
    deadline_s = time.perf_counter() + TIMEOUT_S
    while seen < job.messages and time.perf_counter() < deadline_s:
        messages = consumer.consume(min(1_000, job.messages - seen), 0.1)
        if not messages:
            continue
        if not first_s:
            first_s = commit_s = time.perf_counter()
            producer.begin_transaction()
        for message in messages:
            while True:
                try:
                    producer.produce(output, message.value(), message.key())
                    break
                except BufferError:
                    producer.poll(0.01)
        seen += len(messages)
        if time.perf_counter() - commit_s >= COMMIT_INTERVAL_S or seen == job.messages:
            offsets = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(
                [each for each in offsets if each.offset >= 0], consumer.consumer_group_metadata()
            )
            producer.commit_transaction()
            commit_s = time.perf_counter()
            if seen < job.messages:
                producer.begin_transaction()
    seconds = time.perf_counter() - first_s
    consumer.close()
    delete_topic(job.bootstrap_servers, output)
    return rate(seconds, seen)


CONTESTANTS: dict[str, Callable[[Job], Result]] = {
    "awoke at least once": awoke_at_least_once,
    "awoke exactly once": awoke_exactly_once,
    "awoke exactly once, 4 jobs of a partition": awoke_exactly_once_lanes,
    "confluent-kafka exactly once": confluent_exactly_once,
}

if __name__ == "__main__":
    main(
        Program(
            name="exactly_once",
            title="Consume, call a function, produce; 100 B",
            contestants=CONTESTANTS,
            messages=400_000,
            partitions=PARTITIONS,
            main="messages_per_s",
            is_higher_better=True,
            references=(
                Reference("at least once", ("awoke at least once",)),
                Reference("confluent-kafka", ("confluent-kafka exactly once",)),
            ),
            is_filled=True,
        )
    )
