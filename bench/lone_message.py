"""Sends a hundred messages a second, and measures the time from produce to the handler."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from bench.harness import REPOSITORY, VALUE_BYTES, Job, Program, main
from bench.report import Reference, Result, latency
from tests.support.waiting import work_for

INTERVAL_S = 0.01
WARM_UP_MESSAGES = 50
TIMEOUT_S = 120.0
PROBE = "probe"
SETTINGS = {"auto.offset.reset": "earliest"}


def value_now() -> bytes:
    """Returns a value of 100 B that begins with the time; no JSON, so that no framework decodes it."""
    return f"at {time.monotonic_ns()} ".encode().ljust(VALUE_BYTES, b"x")


def load(bootstrap_servers: str, topic: str, messages: int) -> None:
    """Produces a probe and, once it has arrived, all messages at an even pace. Runs in its own process."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    producer.produce(topic, PROBE.encode())
    producer.flush(TIMEOUT_S)
    sys.stdin.readline()
    begin_s = time.monotonic()
    for number in range(messages + WARM_UP_MESSAGES):
        work_for(max(0.0, begin_s + number * INTERVAL_S - time.monotonic()))
        producer.produce(topic, value_now())
        producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise TimeoutError("not all messages were acknowledged")


class Arrivals:
    """The latencies of messages. `arrived` is called in the handler, by one thread at a time."""

    def __init__(self, messages: int, generator: subprocess.Popen[bytes]) -> None:
        self._wanted = messages + WARM_UP_MESSAGES
        self._generator = generator
        self._latencies_ns: list[int] = []
        self.ended = threading.Event()

    def arrived(self, value: bytes | None) -> bool:
        """Takes the time of one message. Returns whether it was the last."""
        now_ns = time.monotonic_ns()
        assert value is not None
        if value == PROBE.encode():
            assert self._generator.stdin is not None
            self._generator.stdin.write(b"go\n")
            self._generator.stdin.flush()
            return False
        self._latencies_ns.append(now_ns - int(value.split(b" ", 2)[1]))
        if len(self._latencies_ns) == self._wanted:
            self.ended.set()
        return self.ended.is_set()

    def result(self) -> Result:
        """Returns median and p99, once the last one has arrived."""
        if not self.ended.wait(TIMEOUT_S + self._wanted * INTERVAL_S):
            raise TimeoutError("not all messages arrived")
        return latency("arrival", self._latencies_ns[WARM_UP_MESSAGES:])


@contextlib.contextmanager
def arrivals(job: Job) -> Iterator[Arrivals]:
    """The load generator's process, and the latencies of its messages."""
    program = "import sys; from bench.lone_message import load; load(*sys.argv[1:3], int(sys.argv[3]))"
    command = [sys.executable, "-c", program, job.bootstrap_servers, job.topic, str(job.messages)]
    generator = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=REPOSITORY)
    try:
        yield Arrivals(job.messages, generator)
    finally:
        generator.kill()
        generator.wait()
        if generator.stdin is not None:
            generator.stdin.close()


def awoke_sync(job: Job) -> Result:
    """A handler that is a plain function."""
    import awoke
    import awoke.testing

    app = awoke.App("bench", group=job.group, kafka=SETTINGS)
    with arrivals(job) as measured:

        @app.on(job.topic)
        def handle(message: awoke.Message[bytes]) -> None:
            measured.arrived(message.value)

        with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers):
            return measured.result()


def awoke_async(job: Job) -> Result:
    """A handler that is `async def`."""
    import awoke
    import awoke.testing

    app = awoke.App("bench", group=job.group, kafka=SETTINGS)
    with arrivals(job) as measured:

        @app.on(job.topic)
        async def handle(message: awoke.Message[bytes]) -> None:
            measured.arrived(message.value)

        with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers):
            return measured.result()


def confluent_poll(job: Job) -> Result:
    """confluent-kafka's poll() in a loop."""
    from confluent_kafka import Consumer

    consumer = Consumer({**SETTINGS, "bootstrap.servers": job.bootstrap_servers, "group.id": job.group})
    consumer.subscribe([job.topic])
    deadline_s = time.monotonic() + TIMEOUT_S + job.messages * INTERVAL_S
    with arrivals(job) as measured:
        while not measured.ended.is_set() and time.monotonic() < deadline_s:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error():
                raise RuntimeError(str(message.error()))
            measured.arrived(message.value())
        consumer.close()
        return measured.result()


def aiokafka_loop(job: Job) -> Result:
    """aiokafka's `async for`."""
    from aiokafka import AIOKafkaConsumer

    async def consume() -> Result:
        with arrivals(job) as measured:
            async with AIOKafkaConsumer(
                job.topic,
                bootstrap_servers=job.bootstrap_servers,
                group_id=job.group,
                auto_offset_reset="earliest",
            ) as consumer:
                async for message in consumer:
                    if measured.arrived(message.value):
                        break
            return measured.result()

    async def bounded() -> Result:
        return await asyncio.wait_for(consume(), TIMEOUT_S + job.messages * INTERVAL_S)

    return asyncio.run(bounded())


def faststream_handler(job: Job) -> Result:
    """A FastStream subscriber on confluent-kafka."""
    from faststream.confluent import KafkaBroker

    async def consume() -> Result:
        broker = KafkaBroker(job.bootstrap_servers)
        ended = asyncio.Event()
        with arrivals(job) as measured:

            @broker.subscriber(job.topic, group_id=job.group, auto_offset_reset="earliest")
            async def handle(value: bytes) -> None:
                if measured.arrived(value):
                    ended.set()

            await broker.start()
            await asyncio.wait_for(ended.wait(), TIMEOUT_S + job.messages * INTERVAL_S)
            await broker.stop()
            return measured.result()

    return asyncio.run(consume())


PROGRAM = Program(
    name="lone_message",
    title="A lone message, from produce to its handler",
    contestants={
        "confluent-kafka poll()": confluent_poll,
        "awoke sync handler": awoke_sync,
        "awoke async handler": awoke_async,
        "aiokafka": aiokafka_loop,
        "FastStream on confluent-kafka": faststream_handler,
    },
    messages=1_000,
    partitions=1,
    main="arrival_median_us",
    is_higher_better=False,
    references=(Reference("confluent poll()", ("confluent-kafka poll()",)),),
)

if __name__ == "__main__":
    main(PROGRAM)
