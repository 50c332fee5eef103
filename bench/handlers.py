"""Messages per second of trivial handlers: plain, by key, unordered, with an output, exactly once; by number of keys.

The handlers only count, and return the value where there is an output. A row ends when all offsets are stored, or
committed where it is exactly once. Processor time is that of the process, librdkafka's threads included.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.harness import CLUSTER_TIMEOUT_S, REPOSITORY, VALUE, Job, brokers, create_topic, delete_topic, native, unique
from bench.report import RESULTS, machine, number, versions
from tests.support.waiting import wait_until

PARTITIONS = 8
TIMEOUT_S = 300.0
SETTINGS = {"auto.offset.reset": "earliest", "fetch.queue.backoff.ms": "10", "compression.type": "none"}


class Row(NamedTuple):
    """One way to process messages."""

    keys: int = 5_000
    concurrency: str | None = None
    """`by_key`, `unordered`, or None for one job of a partition at a time."""
    jobs: int = 16
    is_async: bool = False
    has_output: bool = False
    options: dict[str, Any] = {}
    beside: str | None = None
    """The row whose rate it is compared with."""
    goal: float | None = None


ROWS: dict[str, Row] = {
    "plain": Row(),
    "plain, async": Row(is_async=True, beside="plain"),
    "by key, 10 keys": Row(10, "by_key", beside="plain", goal=0.35),
    "by key, 1,000 keys": Row(1_000, "by_key", beside="plain", goal=0.35),
    "by key, 5,000 keys": Row(5_000, "by_key", beside="plain", goal=0.35),
    "by key, 100,000 keys": Row(100_000, "by_key", beside="plain", goal=0.35),
    "by key, 5,000 keys, async": Row(5_000, "by_key", is_async=True, beside="plain, async", goal=0.25),
    "unordered": Row(5_000, "unordered", beside="by key, 5,000 keys", goal=1.0),
    "output": Row(has_output=True, beside="plain"),
    "output, by key": Row(5_000, "by_key", has_output=True, beside="output", goal=0.6),
    "output, by key, ordered": Row(
        5_000, "by_key", has_output=True, options={"ordered": True}, beside="output", goal=0.5
    ),
    "exactly once": Row(has_output=True, options={"exactly_once": True}, beside="output", goal=1.0),
    "exactly once, by key (4)": Row(
        5_000, "by_key", 4, has_output=True, options={"exactly_once": True}, beside="exactly once", goal=0.6
    ),
}
NATIVE = "native C, consume"


def run_row(row: Row, job: Job) -> dict[str, float]:
    """Processes the messages of a topic. Returns messages per second, and microseconds of processor time a message."""
    import awoke
    import awoke.testing

    output = create_topic(job.bootstrap_servers, PARTITIONS) if row.has_output else None
    concurrency = None if row.concurrency is None else getattr(awoke, row.concurrency)(row.jobs)
    options = {**row.options, **({} if output is None else {"output": output})}
    app = awoke.App("bench", group=job.group, kafka=SETTINGS)
    began: list[tuple[float, float]] = []

    def handle(message: awoke.Message[bytes]) -> bytes | None:
        if not began:
            began.append((time.perf_counter(), time.process_time()))
        return message.value if output else None

    async def handle_async(message: awoke.Message[bytes]) -> bytes | None:
        return handle(message)

    app.on(job.topic, concurrency=concurrency, **options)(handle_async if row.is_async else handle)
    is_exactly_once = "exactly_once" in row.options
    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers) as server:

        def ended() -> int:
            return sum((each.committed if is_exactly_once else each.stored) or 0 for each in server.partitions())

        # No event tells that an offset is stored.
        wait_until(lambda: ended() >= job.messages, "all messages are done", TIMEOUT_S, every_s=0.002)
        seconds, cpu_s = time.perf_counter() - began[0][0], time.process_time() - began[0][1]
    if output is not None:
        delete_topic(job.bootstrap_servers, output)
    return {"messages_per_s": job.messages / seconds, "cpu_us": cpu_s * 1e6 / job.messages}


def fill(bootstrap_servers: str, topic: str, messages: int, keys: int) -> None:
    """Writes messages with this number of keys, in turn."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers, "queue.buffering.max.messages": 0})
    for place in range(messages):
        producer.produce(topic, VALUE, str(place % keys), partition=place % keys % PARTITIONS)
        if place % 10_000 == 0:
            producer.poll(0)
    if producer.flush(CLUSTER_TIMEOUT_S):
        raise RuntimeError("the topic could not be filled")


def measure(name: str, job: Job) -> dict[str, float]:
    """Runs a row in a process of its own."""
    if name == NATIVE:
        seconds = native("consume", job, SETTINGS)["seconds"]
        return {"messages_per_s": job.messages / seconds}
    command = [sys.executable, "-m", "bench.handlers", "--row", name, "--topic", job.topic]
    command += ["--bootstrap-servers", job.bootstrap_servers, "--messages", str(job.messages)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=2 * TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-800:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def show(found: dict[str, list[dict[str, float]]]) -> None:
    """Prints the medians, and each row's ratio to the one beside it."""
    rates = {name: statistics.median(run["messages_per_s"] for run in runs) for name, runs in found.items()}
    table = Table(title="Trivial handlers, 100 B (messages per s: more is better)")
    for column in ("row", "messages per s", "least", "most", "CPU us a message", "ratio", "goal", "beside"):
        table.add_column(column, justify="left" if column in ("row", "beside") else "right")
    for name, runs in found.items():
        row = ROWS.get(name, Row())
        each = [run["messages_per_s"] for run in runs]
        ratio = rates[name] / rates[row.beside] if row.beside in rates else None
        cpu_us = statistics.median(run.get("cpu_us", 0) for run in runs) or None
        figures = [number(value) for value in (rates[name], min(each), max(each), cpu_us, ratio, row.goal)]
        table.add_row(name, *figures, row.beside or "")
    Console(width=None if Console().is_terminal else 140).print(table)


def main() -> None:
    """Runs the command line: all rows, or the one that is named."""
    parser = argparse.ArgumentParser(prog="python -m bench.handlers", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--row", choices=list(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--topic", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        job = Job(options.bootstrap_servers, options.topic, unique("bench-group"), options.messages)
        print(json.dumps(run_row(ROWS[options.row], job)), flush=True)
        return
    names = [name for name in (NATIVE, *ROWS) if options.only is None or options.only in name]
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        topics: dict[int, str] = {}
        for keys in {ROWS.get(name, Row()).keys for name in names}:
            topics[keys] = create_topic(bootstrap_servers, PARTITIONS)
            fill(bootstrap_servers, topics[keys], options.messages, keys)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for run in range(options.runs + 1):
            for name in names:
                print(
                    f"run {run} of {options.runs}: {name}" if run else f"warm-up: {name}", file=sys.stderr, flush=True
                )
                topic = topics[ROWS.get(name, Row()).keys]
                result = measure(name, Job(bootstrap_servers, topic, unique("bench"), options.messages))
                if run:
                    found[name].append(result)
    show(found)
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), "versions": versions(), "messages": options.messages, "rows": found}
    (RESULTS / "handlers.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
