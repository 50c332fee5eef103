"""Measures `awoke run --watch`: the time from a saved file to the first message that the new code handles.

Messages come all the time, in each partition. The file changes by one number, which the handler writes down.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

import awoke
from bench.harness import brokers, create_topic, unique
from bench.report import RESULTS, machine, versions
from tests.support.processes import Process
from tests.support.waiting import elapse, wait_until

PARTITIONS = 8
EACH_S = 0.005
"""The time between two messages of a partition: the measure is no finer."""
WITHIN_S = 60.0
CODE = """
import os
import time
import awoke

VERSION = {version}
LOG = os.open("handled", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
app = awoke.App("watched", group=os.environ["GROUP"])
is_first = True

@app.on(os.environ["TOPIC"])
def handle(message):
    global is_first
    if is_first:
        is_first = False
        os.write(LOG, f"{{VERSION}} {{time.monotonic_ns()}}\\n".encode())
"""


@contextmanager
def sending(bootstrap_servers: str, topic: str) -> Iterator[None]:
    """Sends messages to each partition, as long as the block lasts."""
    stop = threading.Event()

    def send() -> None:
        with awoke.Producer(bootstrap_servers) as producer:
            while not stop.is_set():
                for partition in range(PARTITIONS):
                    producer.produce(topic, b"x", partition=partition)
                elapse(EACH_S, "a steady rate")

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def handled(folder: Path, version: int) -> list[int]:
    """Returns the times of the first messages of each process with this version, in nanoseconds."""
    file = folder / "handled"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return sorted(int(words[1]) for words in lines if len(words) == 2 and int(words[0]) == version)


def save(process: Process, folder: Path, version: int) -> float:
    """Saves new code; returns the time in ms to the first message that it handles. Waits until the reload has ended."""
    begin_ns = time.monotonic_ns()
    (folder / "shop.py").write_text(CODE.format(version=version))
    wait_until(lambda: bool(handled(folder, version)), "a message of the new code", WITHIN_S, every_s=0.01)
    process.wait_until(lambda lines: sum("the new code runs" in line for line in lines) >= version)
    return (handled(folder, version)[0] - begin_ns) / 1e6


def saves(bootstrap_servers: str, nodes: int, count: int) -> list[float]:
    """Returns the times of these saves, for a swarm with this number of nodes."""
    topic, folder = create_topic(bootstrap_servers, PARTITIONS), Path(tempfile.mkdtemp(prefix="awoke-bench-"))
    (folder / "shop.py").write_text(CODE.format(version=0))
    words = ("run", "shop:app", "--watch", "--nodes", str(nodes), "--socket", str(folder / "socket"))
    env = {"TOPIC": topic, "GROUP": unique("bench-watch")}
    with (
        Process(*words, "-b", bootstrap_servers, env=env, cwd=folder) as process,
        sending(bootstrap_servers, topic),
    ):
        wait_until(lambda: len(handled(folder, 0)) >= nodes, "messages in all nodes", WITHIN_S, every_s=0.01)
        found = [save(process, folder, version) for version in range(1, count + 1)]
        process.signal(signal.SIGTERM)
        process.wait()
    return found


def main() -> None:
    """Runs the benchmark and prints its table."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--saves", type=int, default=20)
    options = parser.parse_args()
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        times = {nodes: saves(bootstrap_servers, nodes, options.saves) for nodes in (1, 4)}
    table = Table("nodes", "least ms", "median ms", "slowest ms", title="From a save to the new code's first message")
    for nodes, found in times.items():
        table.add_row(str(nodes), f"{min(found):.0f}", f"{statistics.median(found):.0f}", f"{max(found):.0f}")
    Console().print(table)
    RESULTS.mkdir(exist_ok=True)
    known = {"machine": machine(), "versions": versions(), "ms": times}
    (RESULTS / "watch.json").write_text(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()
