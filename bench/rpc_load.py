"""Calls over Kafka under load: calls per second, the cost of each, of waiting and expired calls, and what too many of
them do.

1. Calls per second with 1 to 500 threads and with 1,000 tasks, and the caller's wake-ups for each.
2. Memory of a waiting call, over 10,000 of them.
3. Requests whose deadline has passed: skipped per second, none executed.
4. Goodput: results in time per second at once and at twice what the service can do.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import awoke
from awoke import rpc
from bench.harness import Job, brokers, unique
from bench.report import RESULTS, machine, percentile, versions
from bench.rpc import TEXT, TIMEOUT_S, service
from bench.swarm import show
from tests.support.waiting import work_for

WORK_S = 0.01
SLOTS = 8
CALL_TIMEOUT_S = 0.5
PACE_S = 0.002


def wakes() -> int:
    """Returns the number of times that threads of this process went to sleep voluntarily, and so were woken."""
    found = 0
    for status in Path("/proc/self/task").glob("*/status"):
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        found += int(lines["voluntary_ctxt_switches"])
    return found


def resident_bytes() -> int:
    """Returns the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def by_threads(caller: rpc.Caller, threads: int, calls: int) -> dict[str, float]:
    """Returns the calls per second of this number of threads."""
    each = max(1, calls // threads)

    def run(_: int) -> list[float]:
        took_s = []
        for _ in range(each):
            began_s = time.perf_counter()
            caller.call("echo", text=TEXT)
            took_s.append(time.perf_counter() - began_s)
        return took_s

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: caller.call("echo", text=TEXT), range(threads)))
        before, began_s = wakes(), time.perf_counter()
        times_s = [time_s for part in pool.map(run, range(threads)) for time_s in part]
        seconds = time.perf_counter() - began_s
        woken = wakes() - before
    return figures(threads, times_s, seconds, woken)


def by_tasks(caller: rpc.Caller, tasks: int, calls: int) -> dict[str, float]:
    """Returns the calls per second of this number of tasks of one event loop."""
    each = max(1, calls // tasks)

    async def run() -> list[float]:
        took_s = []
        for _ in range(each):
            began_s = time.perf_counter()
            await caller.acall("echo", text=TEXT)
            took_s.append(time.perf_counter() - began_s)
        return took_s

    async def run_all() -> tuple[list[float], float, int]:
        before, began_s = wakes(), time.perf_counter()
        parts = await asyncio.gather(*(run() for _ in range(tasks)))
        return [time_s for part in parts for time_s in part], time.perf_counter() - began_s, wakes() - before

    return figures(tasks, *asyncio.run(run_all()))


def figures(concurrent: int, times_s: list[float], seconds: float, woken: int) -> dict[str, float]:
    """Returns the rows of a load."""
    return {
        "concurrent": concurrent,
        "calls_per_s": len(times_s) / seconds,
        "median_ms": percentile(times_s, 50) * 1e3,
        "p99_ms": percentile(times_s, 99) * 1e3,
        "wakes_per_call": woken / len(times_s),
    }


def waiting(caller: rpc.Caller, calls: int) -> dict[str, float]:
    """Returns the memory of a waiting call in the caller's process."""
    gc.collect()
    before = resident_bytes()
    pending = [caller.submit("hold", timeout_s=30) for _ in range(calls)]
    after = resident_bytes()
    for each in pending:
        each.cancel()
    return {"calls": calls, "bytes_per_call": (after - before) / calls}


def expired(bootstrap_servers: str, calls: int) -> dict[str, float]:
    """Measures expired requests that are in the log at the start."""
    app, executed, end = awoke.App(unique("bench-expired")), Counter[str](), threading.Event()

    @app.rpc.method
    def note(word: str) -> None:
        executed[word] += 1
        if word == "last":
            end.set()

    app.use(bootstrap_servers=bootstrap_servers)
    with rpc.Caller(app.name, bootstrap_servers, create_topics=True) as caller:
        for _ in range(calls):
            handle = caller.cast("note", word="late", timeout_s=0.001)
        handle.wait(TIMEOUT_S)
        caller.cast("note", word="last", timeout_s=TIMEOUT_S).wait()
        server = awoke.AppRunner(app)
        began: list[float] = []
        app.events.subscribe("partitions.assigned", lambda _: began.append(time.perf_counter()))
        server.start()
        end.wait(TIMEOUT_S)
        seconds = time.perf_counter() - began[0]
        skipped = server.calls()["expired"]
        server.stop()
    return {
        "requests": calls,
        "skipped": skipped,
        "executed": executed["late"],
        "skipped_per_s": skipped / seconds,
    }


def overload(caller: rpc.Caller, seconds: float) -> dict[str, float]:
    """Measures the results in time per second, at the service's capacity and at twice its capacity."""
    capacity = goodput(caller, 2 * SLOTS, seconds)
    offered = 2 * capacity["good_per_s"]
    twice = goodput_of_rate(caller, offered, seconds)
    return {
        "capacity_per_s": capacity["good_per_s"],
        "offered_per_s": twice["offered_per_s"],
        "good_per_s": twice["good_per_s"],
        "refused_per_s": twice["refused_per_s"],
        "late_per_s": twice["late_per_s"],
        "goodput": twice["good_per_s"] / capacity["good_per_s"],
    }


def goodput(caller: rpc.Caller, threads: int, seconds: float) -> dict[str, float]:
    """Returns the results of this number of callers, each waiting for its own."""
    until_s = time.monotonic() + seconds

    def run(_: int) -> int:
        count = 0
        while time.monotonic() < until_s:
            caller.call("work", seconds=WORK_S)
            count += 1
        return count

    with ThreadPoolExecutor(threads) as pool:
        good = sum(pool.map(run, range(threads)))
    return {"good_per_s": good / seconds}


def goodput_of_rate(caller: rpc.Caller, per_s: float, seconds: float) -> dict[str, float]:
    """Makes calls at an even pace, without waiting for earlier ones; returns their results."""
    pending: list[rpc.PendingResult] = []
    began_s = time.monotonic()
    while (now_s := time.monotonic()) < began_s + seconds:
        for _ in range(int((now_s - began_s) * per_s) - len(pending)):
            pending.append(caller.submit("work", seconds=WORK_S, timeout_s=CALL_TIMEOUT_S))
        work_for(PACE_S)
    outcomes = Counter[str]()
    for each in pending:
        try:
            each.wait()
            outcomes["good"] += 1
        except rpc.RpcError as error:
            outcomes[error.code] += 1
    return {
        "offered_per_s": len(pending) / seconds,
        "good_per_s": outcomes["good"] / seconds,
        "refused_per_s": outcomes["resource_exhausted"] / seconds,
        "late_per_s": outcomes["deadline_exceeded"] / seconds,
    }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.rpc_load", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    parts: dict[str, dict[str, float]] = {}
    retries = rpc.Retries(attempts=1)

    def measure(name: str, part: Callable[[], dict[str, float]]) -> None:
        print(name, flush=True)
        parts[name] = part()

    with brokers(options.bootstrap_servers) as bootstrap_servers:
        job = Job(bootstrap_servers, "", "", 0)
        with (
            service(job, BENCH_THREADS=str(SLOTS)) as name,
            rpc.Caller(name, bootstrap_servers, timeout_s=TIMEOUT_S, create_topics=True, retries=retries) as caller,
        ):
            caller.wait_until_served()
            for threads in (1, 10, 100, 500):
                calls = options.calls if threads > 1 else max(1, options.calls // 10)
                measure(f"{threads} threads", partial(by_threads, caller, threads, calls))
            measure("1000 tasks", lambda: by_tasks(caller, 1_000, options.calls))
            measure("overload", lambda: overload(caller, options.seconds))
            measure("waiting calls", lambda: waiting(caller, 10_000))
        measure("expired requests", lambda: expired(bootstrap_servers, 5 * options.calls))
    show(parts)
    RESULTS.mkdir(exist_ok=True)
    document: dict[str, Any] = {"machine": machine(), "versions": versions(), **parts}
    (RESULTS / "rpc_load.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
