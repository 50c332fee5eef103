"""Sequential calls over Kafka: the time of each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from bench.harness import REPOSITORY, VALUE, Job, Program, main, native, unique
from bench.report import Reference, Result, latency

WARM_UP_CALLS = 100
FIRST_CALLS = 100
TIMEOUT_S = 60.0
TEXT = VALUE.decode()


@contextlib.contextmanager
def service(job: Job, app: str = "app", **environment: str) -> Iterator[str]:
    """Runs an app of `bench.rpc_app`, a service of awoke's, in its own process. Yields its name."""
    name = unique("bench-service")
    command = [
        sys.executable,
        "-c",
        "from awoke.cli import main; main()",
        "run",
        f"bench.rpc_app:{app}",
        "--log-level",
        "warning",
    ]
    process = subprocess.Popen(
        [*command, "--bootstrap-servers", job.bootstrap_servers],
        cwd=REPOSITORY,
        env={**os.environ, **environment, "BENCH_SERVICE": name},
    )
    try:
        yield name
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def timed(call: Callable[[], object], calls: int) -> Result:
    """Returns median and p99 of sequential calls, and the seconds of the first hundred of them."""
    for _ in range(WARM_UP_CALLS):
        call()
    times_ns = []
    for _ in range(calls):
        began_ns = time.perf_counter_ns()
        call()
        times_ns.append(time.perf_counter_ns() - began_ns)
    return {**latency("call", times_ns), "hundred_calls_s": sum(times_ns[:FIRST_CALLS]) / 1e9}


def native_round_trip(job: Job) -> Result:
    """C: one thread produces, consumes, produces and consumes, linger 0."""
    found = native("round-trip", job, {"linger.ms": 0})
    return {name: found[name] for name in ("call_median_us", "call_p99_us")}


def awoke_call(job: Job) -> Result:
    """`call` to a `def` method, in another process."""
    from awoke import rpc

    # The service may still be starting: a group without members is no reason to give up.
    with (
        service(job) as name,
        rpc.Caller(name, job.bootstrap_servers, timeout_s=TIMEOUT_S, create_topics=True, checks_group=False) as caller,
    ):
        caller.submit("echo", text=TEXT).wait()
        return timed(lambda: caller.call("echo", text=TEXT), job.messages)


def awoke_acall(job: Job) -> Result:
    """`await acall` to an `async def` method beside `def` methods, in another process."""
    return _acall(job, "app")


def awoke_acall_async(job: Job) -> Result:
    """`await acall` to a service whose methods are all `async def`, in another process."""
    return _acall(job, "async_app")


def _acall(job: Job, app: str) -> Result:
    from awoke import rpc

    async def ask(caller: rpc.Caller) -> Result:
        for _ in range(WARM_UP_CALLS):
            await caller.acall("aecho", text=TEXT)
        times_ns = []
        for _ in range(job.messages):
            began_ns = time.perf_counter_ns()
            await caller.acall("aecho", text=TEXT)
            times_ns.append(time.perf_counter_ns() - began_ns)
        return {**latency("call", times_ns), "hundred_calls_s": sum(times_ns[:FIRST_CALLS]) / 1e9}

    with (
        service(job, app) as name,
        rpc.Caller(name, job.bootstrap_servers, timeout_s=TIMEOUT_S, create_topics=True, checks_group=False) as caller,
    ):
        return asyncio.run(ask(caller))


def confluent_by_hand(job: Job) -> Result:
    """confluent-kafka on both sides, linger 0, without deadlines, types or errors; the responder in another process."""
    from confluent_kafka import Producer

    responder = subprocess.Popen(
        [sys.executable, "-c", f"from bench.rpc import respond; respond({job.bootstrap_servers!r}, {job.topic!r})"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    )
    try:
        assert responder.stdout is not None
        responder.stdout.readline()
        consumer = follow(job.bootstrap_servers, job.topic, 1)
        producer = Producer({"bootstrap.servers": job.bootstrap_servers, "linger.ms": 0})

        def call() -> None:
            producer.produce(job.topic, VALUE, partition=0)
            producer.poll(0)
            message = consumer.poll(TIMEOUT_S)
            if message is None or message.error():
                raise TimeoutError("no reply")

        result = timed(call, job.messages)
        consumer.close()
        return result
    finally:
        responder.kill()
        responder.wait()
        if responder.stdout is not None:
            responder.stdout.close()


def follow(bootstrap_servers: str, topic: str, partition: int):  # type: ignore[no-untyped-def]
    """Returns a confluent-kafka consumer that reads one partition from its end on."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": unique("bench"), "enable.auto.commit": False}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
    consumer.assign([TopicPartition(topic, partition, end)])
    return consumer


def respond(bootstrap_servers: str, topic: str) -> None:
    """Sends the records of partition 0 to partition 1, until killed."""
    from confluent_kafka import Producer

    consumer = follow(bootstrap_servers, topic, 0)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    print("READY", flush=True)
    while True:
        message = consumer.poll(TIMEOUT_S)
        if message is not None and not message.error():
            producer.produce(topic, message.value(), partition=1)
            producer.poll(0)


PROGRAM = Program(
    name="rpc",
    title="Sequential calls over Kafka, 100 B",
    contestants={
        "native produce-consume-produce-consume": native_round_trip,
        "awoke call": awoke_call,
        "awoke acall": awoke_acall,
        "awoke acall, async service": awoke_acall_async,
        "confluent-kafka, by hand": confluent_by_hand,
    },
    messages=1_000,
    partitions=2,
    main="call_median_us",
    is_higher_better=False,
    references=(
        Reference("native C", ("native produce-consume-produce-consume",)),
        Reference("confluent by hand", ("confluent-kafka, by hand",)),
    ),
)

if __name__ == "__main__":
    main(PROGRAM)
