"""Waits for delivery reports with polling handles, a condition variable, and awoke's handles; alone and under load.

1. The designs of a Kafka driver's history: a handle that sleeps 100 ms or 10 ms between two checks, one with a
   condition variable (both on confluent-kafka with a polling thread), and awoke's. Time for 1,000 sends, time lost
   after the report, processor time.
2. awoke's under load: beside 100,000 asynchronous messages per second of the same producer and of another, beside a
   thread that computes, in one task beside aiokafka, and with many threads or tasks that wait at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer as ConfluentProducer
from rich.console import Console
from rich.table import Table

import awoke
from bench.harness import VALUE, Job, brokers, create_topic, native
from bench.report import RESULTS, machine, number, percentile, versions
from tests.support.waiting import elapse

PLOT = Path(__file__).resolve().parent / "plots" / "handles.svg"
SETTINGS: dict[str, str | int | bool] = {"acks": "all", "enable.idempotence": False}
SENDS = 1_000
FLOOD_PER_S = 100_000
BESIDE = "beside 100,000 messages/s"
OF_ITS_OWN = f"a producer of its own, {BESIDE}"
WARM_UP_ROUNDS = 3
"""Sends that are not counted: the broker's JVM compiles meanwhile, which takes one of the two cores."""
ROUNDS = 9

Figures = dict[str, float]
Send = Callable[[], int]
"""Sends a message and waits for it. Returns the time of its report, in ns of the monotonic clock (0: unknown)."""


class SleepingHandle:
    """A handle that checks for its report, and sleeps between two checks."""

    def __init__(self, sleep_s: float) -> None:
        self._sleep_s = sleep_s
        self.came_ns = 0

    def on_delivery(self, error: object, message: object) -> None:
        """Takes the report."""
        self.came_ns = time.monotonic_ns()

    def wait(self) -> int:
        """Checks and sleeps, in turn."""
        while not self.came_ns:
            elapse(self._sleep_s, "this design sleeps")
        return self.came_ns


class ConditionHandle:
    """A handle that waits on a condition variable of its own."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.came_ns = 0

    def on_delivery(self, error: object, message: object) -> None:
        """Takes the report."""
        with self._changed:
            self.came_ns = time.monotonic_ns()
            self._changed.notify()

    def wait(self) -> int:
        """Waits until the report is there."""
        with self._changed:
            while not self.came_ns:
                self._changed.wait(60)
        return self.came_ns


@contextmanager
def confluent(bootstrap_servers: str, topic: str, handle: Callable[[], Any], linger_ms: int) -> Iterator[Send]:
    """confluent-kafka with a thread that polls."""
    settings = {"bootstrap.servers": bootstrap_servers, "linger.ms": linger_ms, **SETTINGS}
    producer, is_over = ConfluentProducer(settings), threading.Event()

    def poll() -> None:
        while not is_over.is_set():
            producer.poll(0.1)

    def send() -> int:
        each = handle()
        producer.produce(topic, VALUE, on_delivery=each.on_delivery)
        return int(each.wait())

    poller = threading.Thread(target=poll)
    poller.start()
    yield send
    is_over.set()
    poller.join()
    producer.flush(10)


@contextmanager
def ours(bootstrap_servers: str, topic: str) -> Iterator[Send]:
    """awoke with default linger."""
    with awoke.Producer(bootstrap_servers, kafka=SETTINGS) as producer:

        def send() -> int:
            handle = producer.produce(topic, VALUE)
            handle.wait()
            return handle.woken_at_ns

        yield send


def measured(send: Send, sends: int) -> Figures:
    """Measures time and processor time for 1,000 sends, and the time lost after the reports."""
    for _ in range(min(100, sends)):
        send()
    wasted: list[int] = []
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    for _ in range(sends):
        came_ns = send()
        if came_ns:
            wasted.append(time.monotonic_ns() - came_ns)
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    return {
        "seconds_per_1000": seconds / sends * 1_000,
        "wasted_median_us": statistics.median(wasted) / 1e3 if wasted else 0.0,
        "wasted_p99_us": percentile(wasted, 99) / 1e3 if wasted else 0.0,
        "cpu_us_per_send": cpu_s / sends * 1e6,
    }


def ways(bootstrap_servers: str, sends: int) -> dict[str, Figures]:
    """Measures part 1."""
    topic = create_topic(bootstrap_servers, 1)
    found = {}
    for name, handle, count in (
        ("sleeps 100 ms", lambda: SleepingHandle(0.1), min(sends, 50)),
        ("sleeps 10 ms", lambda: SleepingHandle(0.01), min(sends, 300)),
        ("condition variable", ConditionHandle, sends),
    ):
        for linger_ms in (5, 0):
            with confluent(bootstrap_servers, topic, handle, linger_ms) as send:
                found[f"{name}, linger {linger_ms}"] = measured(send, count)
    with ours(bootstrap_servers, topic) as send:
        found["awoke, default linger"] = measured(send, sends)
    return found


@contextmanager
def beside(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """A load that another thread makes meanwhile."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,))
    thread.start()
    yield
    is_over.set()
    thread.join()


def compute(is_over: threading.Event) -> None:
    """Computes, and needs the GIL all the time."""
    number = 0
    while not is_over.is_set():
        for _ in range(10_000):
            number += 1


def native_beside(bootstrap_servers: str, topic: str, sends: int) -> Figures:
    """Measures the same in C: the sender beside it has its own client, and there is no GIL."""
    settings = {**SETTINGS, "linger.ms": 0, "enable.idempotence": "false"}
    found = native("sync-beside", Job(bootstrap_servers, topic, "-", sends), settings)
    return {
        "seconds_per_1000": found["seconds"] / sends * 1_000,
        "asynchronous_per_s": found["asynchronous_per_s"],
        "of_alone": found["seconds"] / found["alone_seconds"],
    }


def company(bootstrap_servers: str, sends: int) -> dict[str, Figures]:
    """Measures part 2."""
    topic, found = create_topic(bootstrap_servers, 4), {}
    with (
        awoke.Producer(bootstrap_servers, kafka=SETTINGS) as producer,
        awoke.Producer(bootstrap_servers, kafka=SETTINGS) as another,
    ):
        sent = [0]

        def flood(flooding: awoke.Producer, is_over: threading.Event) -> None:
            began_s = time.perf_counter()
            while not is_over.is_set():
                for _ in range(1_000):
                    flooding.produce(topic, VALUE)
                sent[0] += 1_000
                is_over.wait(max(0.0, began_s + sent[0] / FLOOD_PER_S - time.perf_counter()))

        def send() -> int:
            handle = producer.produce(topic, VALUE)
            handle.wait()
            return handle.woken_at_ns

        rounds: dict[str, list[Figures]] = {"alone": [], BESIDE: [], OF_ITS_OWN: [], f"native C, {BESIDE}": []}
        for turn in range(-WARM_UP_ROUNDS, ROUNDS):
            if turn == 0:
                for each in rounds.values():
                    each.clear()
            alone = measured(send, sends)
            rounds["alone"].append(alone)
            for name, flooding in ((BESIDE, producer), (OF_ITS_OWN, another)):
                sent[0], began_s = 0, time.perf_counter()
                with beside(partial(flood, flooding)):
                    busy = measured(send, sends)
                    busy["asynchronous_per_s"] = sent[0] / (time.perf_counter() - began_s)
                busy["of_alone"] = busy["seconds_per_1000"] / alone["seconds_per_1000"]
                rounds[name].append(busy)
            rounds[f"native C, {BESIDE}"].append(native_beside(bootstrap_servers, topic, sends))
        for name, each in rounds.items():
            found[name] = {word: statistics.median(figures[word] for figures in each) for word in each[0]}
        with beside(compute):
            found["beside a thread that computes"] = measured(send, min(sends, 200))
        for threads in (10, 100, 500):
            with ThreadPoolExecutor(threads) as pool:
                each = max(1, 20_000 // threads)
                began_s = time.perf_counter()
                list(pool.map(lambda _, each=each: [send() for _ in range(each)], range(threads)))
                found[f"{threads} threads"] = {"per_s": threads * each / (time.perf_counter() - began_s)}
        found |= one_task(bootstrap_servers, producer, topic, sends)
        found["1,000 tasks"] = {"per_s": asyncio.run(awaited(producer, topic, 1_000, 20_000))}
    return found


def one_task(bootstrap_servers: str, producer: awoke.Producer, topic: str, sends: int) -> dict[str, Figures]:
    """Measures `await handle` in one task and aiokafka's `send_and_wait`, in turn."""
    rounds: dict[str, list[float]] = {"1 task, await handle": [], "1 task, aiokafka send_and_wait": []}
    for turn in range(-WARM_UP_ROUNDS, ROUNDS):
        figures = (
            asyncio.run(awaited(producer, topic, 1, sends)),
            asyncio.run(awaited_by_aiokafka(bootstrap_servers, topic, sends)),
        )
        if turn >= 0:
            for each, per_s in zip(rounds.values(), figures, strict=True):
                each.append(per_s)
    return {name: {"per_s": statistics.median(each)} for name, each in rounds.items()}


async def awaited_by_aiokafka(bootstrap_servers: str, topic: str, sends: int) -> float:
    """Returns the sends per second of one task; acks and idempotence as awoke's, and its default of no linger."""
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all") as producer:
        for _ in range(min(100, sends)):
            await producer.send_and_wait(topic, VALUE)
        began_s = time.perf_counter()
        for _ in range(sends):
            await producer.send_and_wait(topic, VALUE)
        return sends / (time.perf_counter() - began_s)


async def awaited(producer: awoke.Producer, topic: str, tasks: int, sends: int) -> float:
    """Returns the sends per second of tasks that await each send."""

    async def send(messages: int = sends // tasks) -> None:
        for _ in range(messages):
            await producer.produce(topic, VALUE)

    await send(min(100, sends))
    began_s = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(tasks)))
    return sends / (time.perf_counter() - began_s)


def show(title: str, results: dict[str, Figures]) -> None:
    """Prints a table."""
    names = list(dict.fromkeys(name for each in results.values() for name in each))
    table = Table("", *(name.replace("_", " ") for name in names), title=title)
    for name, figures in results.items():
        table.add_row(name, *(number(figures.get(each)) for each in names))
    Console(width=None if Console().is_terminal else 160).print(table)


def plot(results: dict[str, Figures]) -> None:
    """Returns the seconds for 1,000 sends."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(8, 3.2))
    panel.barh(list(results)[::-1], [each["seconds_per_1000"] for each in results.values()][::-1])
    panel.set(xscale="log", xlabel="seconds for 1,000 synchronous sends")
    figure.tight_layout()
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.handles", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=SENDS)
    options = parser.parse_args()
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        first = ways(bootstrap_servers, options.messages)
        second = company(bootstrap_servers, options.messages)
    show("Waiting for each of 1,000 messages", first)
    show("awoke's handles in company", second)
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), "versions": versions(), "ways": first, "company": second}
    (RESULTS / "handles.json").write_text(json.dumps(document, indent=2) + "\n")
    if options.messages == SENDS:
        plot(first)


if __name__ == "__main__":
    main()
