"""Hands batches of jobs to a pool of workers and waits for them: by yielding in a loop, by popping, and awoke's way.

The first two are the two ways of Karafka's fetching thread, before and after it waited by popping. In awoke no thread
waits for a batch: workers ask for the next job themselves, so the wake-ups of workers are counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.report import RESULTS, machine, versions
from tests.support.waiting import work_for

WORKERS = 5
JOBS_OF_BATCH = 5
BATCHES = {0: 2_000, 1: 1_000, 100: 20}
"""The number of batches, by the length of a job in milliseconds."""
QUICK_BATCHES = {0: 100, 1: 50, 100: 3}


class Measured(NamedTuple):
    """The cost of one way of waiting."""

    waits_per_batch: float
    """The checks of the waiting thread; for awoke, the wake-ups of workers."""
    cpu_us_per_batch: float
    jobs_per_s: float


def work(job_ms: int) -> None:
    """One job: waits as a handler waits for an answer."""
    if job_ms:
        work_for(job_ms / 1_000)


@contextlib.contextmanager
def measured(batches: int, waits: Callable[[], int]) -> Iterator[list[Measured]]:
    """Appends the cost of the block to the list."""
    found: list[Measured] = []
    before, began_s, began_cpu_s = waits(), time.perf_counter(), time.process_time()
    yield found
    seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    found.append(
        Measured((waits() - before) / batches, cpu_s / batches * 1e6, batches * JOBS_OF_BATCH / seconds),
    )


@contextlib.contextmanager
def pool(run: Callable[[], None]) -> Iterator[queue.SimpleQueue[Callable[[], None] | None]]:
    """Runs workers that pop jobs and call `run` for each."""
    jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def serve() -> None:
        while (job := jobs.get()) is not None:
            job()

    threads = [threading.Thread(target=serve) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    yield jobs
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join()


def by_yielding(job_ms: int, batches: int) -> Measured:
    """Lets the fetching thread check in a loop whether all are done, and yield in between."""
    looks = 0
    lock, done = threading.Lock(), 0

    def job() -> None:
        nonlocal done
        work(job_ms)
        with lock:
            done += 1

    with pool(job) as jobs, measured(batches, lambda: looks) as found:
        for _ in range(batches):
            done = 0
            for _ in range(JOBS_OF_BATCH):
                jobs.put(job)
            while done < JOBS_OF_BATCH:
                looks += 1
                work_for(0)  # Ruby's Thread.pass
    return found[0]


def by_popping(job_ms: int, batches: int) -> Measured:
    """Lets the fetching thread pop a completion for each job."""
    pops = 0
    completions: queue.SimpleQueue[None] = queue.SimpleQueue()

    def job() -> None:
        work(job_ms)
        completions.put(None)

    with pool(job) as jobs, measured(batches, lambda: pops) as found:
        for _ in range(batches):
            for _ in range(JOBS_OF_BATCH):
                jobs.put(job)
            for _ in range(JOBS_OF_BATCH):
                completions.get()
                pops += 1
    return found[0]


def by_awoke(job_ms: int, batches: int) -> Measured:
    """Runs an app with as many partitions as a batch has jobs; the messages are there before."""
    import awoke
    from awoke.testing import EmbeddedCluster, running

    with EmbeddedCluster() as cluster:
        cluster.create_topic("jobs", partitions=JOBS_OF_BATCH)
        app = awoke.App("bench-waiting", bootstrap_servers=cluster.bootstrap_servers, workers=WORKERS)
        done, began, over = 0, threading.Event(), threading.Event()
        lock = threading.Lock()

        @app.on("jobs", batch=awoke.Batching(max_messages=1))
        def handle(message: awoke.Message[bytes]) -> None:
            nonlocal done
            began.wait()
            work(job_ms)
            with lock:
                done += 1
                if done == batches * JOBS_OF_BATCH:
                    over.set()

        with awoke.Producer(cluster.bootstrap_servers) as producer:
            for number in range(batches * JOBS_OF_BATCH):
                producer.produce("jobs", b"job", partition=number % JOBS_OF_BATCH)
        with running(app) as server:
            threads = server.counters

            def wakes() -> int:
                counts = threads()["threads"]
                return counts["job_wakes"] + counts["clock_wakes"]

            with measured(batches, wakes) as found:
                began.set()
                over.wait()
    return found[0]


WAYS = {"yielding": by_yielding, "popping": by_popping, "awoke": by_awoke}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.waiting", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few batches: no figures to quote")
    parser.add_argument("--bootstrap-servers", help="not used: nothing here needs a broker")
    options = parser.parse_args()
    results: dict[str, dict[str, Measured]] = {}
    for job_ms, batches in (QUICK_BATCHES if options.quick else BATCHES).items():
        for name, way in WAYS.items():
            print(f"{name}, jobs of {job_ms} ms", file=sys.stderr, flush=True)
            results.setdefault(f"{job_ms} ms", {})[name] = way(job_ms, batches)
    show(results)
    RESULTS.mkdir(exist_ok=True)
    document = {
        "machine": machine(),
        "versions": versions(),
        "results": {length: {name: each._asdict() for name, each in ways.items()} for length, ways in results.items()},
    }
    (RESULTS / "waiting.json").write_text(json.dumps(document, indent=2) + "\n")


def show(results: dict[str, dict[str, Measured]]) -> None:
    """Prints a table."""
    table = Table("job", "waits by", "waits per batch", "CPU us per batch", "jobs per s", title="Waiting for workers")
    for length, ways in results.items():
        for name, each in ways.items():
            table.add_row(
                length, name, f"{each.waits_per_batch:,.2f}", f"{each.cpu_us_per_batch:,.0f}", f"{each.jobs_per_s:,.0f}"
            )
    Console().print(table)


if __name__ == "__main__":
    main()
