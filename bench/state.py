"""The cost of a table: count the messages of each key, exactly once, and send each count."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.exactly_once import COMMIT_INTERVAL_S, PARTITIONS, TIMEOUT_S, awoke_exactly_once
from bench.harness import Job, Program, Result, create_topic, delete_topic, main, rate
from bench.report import Reference
from tests.support.waiting import wait_until

KEYS = 10_000


def awoke_count(job: Job) -> Result:
    """A function that counts in a table, until all offsets are committed."""
    import awoke
    import awoke.testing

    output = create_topic(job.bootstrap_servers, PARTITIONS)
    app = awoke.App(job.group, group=job.group, kafka={"compression.type": "none"})
    counts = app.table("counts")
    began: list[float] = []

    @app.on(job.topic, output=output, tables=[counts])
    def count(message: awoke.Message[bytes]) -> bytes:
        if not began:
            began.append(time.perf_counter())
        key = b"%d" % (message.offset % KEYS)
        counted = b"%d" % (int(counts.get(key, b"0")) + 1)
        counts[key] = counted
        return counted

    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers) as server:

        def ended() -> int:
            return sum(each.committed or 0 for each in server.partitions())

        # No event tells that an offset is stored.
        wait_until(lambda: ended() >= job.messages, "all messages are done", TIMEOUT_S, every_s=0.001)
        seconds = time.perf_counter() - began[0]
    for topic in (output, str(counts.changelog)):
        delete_topic(job.bootstrap_servers, topic)
    return rate(seconds, job.messages)


def confluent_count(job: Job) -> Result:
    """A loop written by hand: a dict for each partition, a changelog, and every 100 ms offsets and commit."""
    from confluent_kafka import Consumer, Producer

    output, changelog = (create_topic(job.bootstrap_servers, PARTITIONS) for _ in range(2))
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
    rows: list[dict[bytes, int]] = [{} for _ in range(PARTITIONS)]
    seen, first_s, commit_s = 0, 0.0, 0.0
    deadline_s = time.perf_counter() + TIMEOUT_S

    def produce(topic: str, value: bytes, key: bytes | None, partition: int) -> None:
        while True:
            try:
                producer.produce(topic, value, key, partition)
                return
            except BufferError:
                producer.poll(0.01)

    while seen < job.messages and time.perf_counter() < deadline_s:
        messages = consumer.consume(min(1_000, job.messages - seen), 0.1)
        if not messages:
            continue
        if not first_s:
            first_s = commit_s = time.perf_counter()
            producer.begin_transaction()
        for message in messages:
            partition = message.partition()
            key = b"%d" % (message.offset() % KEYS)
            counted = rows[partition].get(key, 0) + 1
            rows[partition][key] = counted
            produce(changelog, b"%d" % counted, key, partition)
            produce(output, b"%d" % counted, message.key(), partition)
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
    for topic in (output, changelog):
        delete_topic(job.bootstrap_servers, topic)
    return rate(seconds, seen)


CONTESTANTS: dict[str, Callable[[Job], Result]] = {
    "awoke exactly once, no table": awoke_exactly_once,
    "awoke with a table": awoke_count,
    "confluent-kafka with a dict": confluent_count,
}

if __name__ == "__main__":
    main(
        Program(
            name="state",
            title="Count per key in a table, exactly once, and send the count; 100 B",
            contestants=CONTESTANTS,
            messages=400_000,
            partitions=PARTITIONS,
            main="messages_per_s",
            is_higher_better=True,
            references=(
                Reference("no table", ("awoke exactly once, no table",)),
                Reference("by hand", ("confluent-kafka with a dict",)),
            ),
            is_filled=True,
        )
    )
