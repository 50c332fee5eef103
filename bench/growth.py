"""Measures how cost grows with partitions, keys, workers, members, sizes, brokers, nodes and waiting calls.

Each point runs in a process of its own. A curve ends in a sentence: constant, linear, or something between, by the
slope of its line through logarithms. The plot is `bench/plots/growth.svg`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness import CLUSTER_TIMEOUT_S, REPOSITORY, VALUE, Job, brokers, create_topic, delete_topic, fill, unique
from bench.report import RESULTS, machine, number, versions
from tests.support.waiting import wait_until, work_for

PLOT = REPOSITORY / "bench" / "plots" / "growth.svg"
TIMEOUT_S = 300.0
MESSAGES = 300_000
BYTES = 200_000_000
"""Read and written for each size of message, at most."""
SETTINGS = {"auto.offset.reset": "earliest", "fetch.queue.backoff.ms": "10", "compression.type": "none"}
WORK_S = 0.002
FLAT, STEEP = 0.15, 0.85
"""A slope below the first is called constant, one above the second linear."""

Point = dict[str, float]


class Curve(NamedTuple):
    """One curve. The first measure of its points is the one that is plotted and judged."""

    axis: str
    points: tuple[int, ...]
    measure: Callable[[str, int], Point]
    brokers: Callable[[int], int] = lambda _: 1


def resident_mb() -> float:
    """Returns the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def threads() -> int:
    """Returns the number of threads of this process."""
    return len(os.listdir("/proc/self/task"))


def process_all(job: Job, handle: Callable[[Any], Any] | None = None, **options: Any) -> Point:
    """Processes a topic's messages. Returns the costs of it."""
    import awoke
    import awoke.testing

    own = {name: options.pop(name) for name in ("workers", "fetch_batch_max_mb") if name in options}
    app = awoke.App("bench", group=job.group, kafka=SETTINGS, **own)
    began: list[tuple[float, float]] = []
    ended = threading.Event()
    places = itertools.count(1)  # Its steps are atomic.

    def note(message: awoke.Message[bytes]) -> None:
        if not began:
            began.append((time.perf_counter(), time.process_time()))
        if handle is not None:
            handle(message)
        if next(places) == job.messages:
            ended.set()

    app.on(job.topic, **options)(note)
    started_s, before_mb = time.perf_counter(), resident_mb()
    with awoke.testing.running(app, bootstrap_servers=job.bootstrap_servers):
        if not ended.wait(TIMEOUT_S):
            raise RuntimeError("not all messages were processed")
        seconds, cpu_s = time.perf_counter() - began[0][0], time.process_time() - began[0][1]
        found = {"threads": float(threads()), "more MB": resident_mb() - before_mb}
    return {
        "us a message": seconds * 1e6 / job.messages,
        "CPU us a message": cpu_s * 1e6 / job.messages,
        "s to the first": began[0][0] - started_s,
        **found,
    }


@contextmanager
def topic_of(bootstrap_servers: str, partitions: int, messages: int, value: bytes = VALUE) -> Iterator[Job]:
    """A full topic, for the length of the `with` block."""
    topic = create_topic(bootstrap_servers, partitions, bytes_max=2 * len(value) + 1_000_000)
    fill(bootstrap_servers, topic, partitions, messages, value)
    yield Job(bootstrap_servers, topic, unique("bench"), messages)
    delete_topic(bootstrap_servers, topic)


def by_partitions(bootstrap_servers: str, partitions: int) -> Point:
    with topic_of(bootstrap_servers, partitions, MESSAGES // partitions * partitions) as job:
        return process_all(job)


def by_keys(bootstrap_servers: str, keys: int) -> Point:
    import awoke
    from bench.handlers import PARTITIONS
    from bench.handlers import fill as fill_keys

    topic = create_topic(bootstrap_servers, PARTITIONS)
    fill_keys(bootstrap_servers, topic, MESSAGES, keys)
    found = process_all(Job(bootstrap_servers, topic, unique("bench"), MESSAGES), concurrency=awoke.by_key())
    delete_topic(bootstrap_servers, topic)
    return found


def by_workers(bootstrap_servers: str, workers: int) -> Point:
    """Handlers that wait: twice the workers do twice the work."""
    import awoke

    with topic_of(bootstrap_servers, 8, 100 * workers) as job:
        found = process_all(job, lambda _: work_for(WORK_S), concurrency=awoke.unordered(64), workers=workers)
    return {"us a message of each worker": found["us a message"] * workers, **found}


def by_members(bootstrap_servers: str, members: int) -> Point:
    """One more member joins this number of them."""
    import awoke

    topic = create_topic(bootstrap_servers, 64)
    group = unique("bench")

    def runner() -> awoke.AppRunner:
        app = awoke.App("bench", group=group, kafka={**SETTINGS, "heartbeat.interval.ms": "500"})
        app.on(topic)(lambda message: None)
        app.use(bootstrap_servers=bootstrap_servers)
        return awoke.AppRunner(app)

    def is_even(runners: list[awoke.AppRunner]) -> bool:
        held = [len(each.partitions()) for each in runners]
        return sum(held) == 64 and min(held) >= 64 // len(held)

    runners = [runner() for _ in range(members)]
    with ExitStack() as stack:
        before_mb, before = resident_mb(), threads()
        for each in runners:
            each.start()
            stack.callback(each.stop)
        wait_until(lambda: is_even(runners), "all members have partitions", TIMEOUT_S, every_s=0.01)
        found = {
            "MB a member": (resident_mb() - before_mb) / members,
            "threads a member": (threads() - before) / members,
        }
        one_more, began_s = runner(), time.perf_counter()
        one_more.start()
        stack.callback(one_more.stop)
        wait_until(lambda: is_even([*runners, one_more]), "the new member has its share", TIMEOUT_S, every_s=0.005)
        return {"s to rebalance": time.perf_counter() - began_s, **found}


def by_size(bootstrap_servers: str, size: int) -> Point:
    import awoke

    messages = max(8, min(MESSAGES, BYTES // size) // 8 * 8)
    value = b"x" * size
    topic = create_topic(bootstrap_servers, 8, bytes_max=2 * size + 1_000_000)
    kafka = {"compression.type": "none", "message.max.bytes": max(1_000_000, 2 * size)}
    with awoke.Producer(bootstrap_servers, kafka=kafka) as producer:
        began_s = time.perf_counter()
        for place in range(0, messages, 1_000):
            count = min(1_000, messages - place)
            producer.produce_many(topic, [awoke.Record(value, partition=each % 8) for each in range(count)])
        if not producer.flush(CLUSTER_TIMEOUT_S):
            raise RuntimeError("not all messages were delivered")
        produced_s = time.perf_counter() - began_s
    job = Job(bootstrap_servers, topic, unique("bench"), messages)
    found = process_all(job, lambda message: message.value, fetch_batch_max_mb=max(8, 3 * size // 1_000_000))
    delete_topic(bootstrap_servers, topic)
    return {"produce us a message": produced_s * 1e6 / messages, **found}


def by_brokers(bootstrap_servers: str, count: int) -> Point:
    with topic_of(bootstrap_servers, 6 * count, MESSAGES // (6 * count) * 6 * count) as job:
        return process_all(job)


def by_nodes(bootstrap_servers: str, nodes: int) -> Point:
    from awoke.swarm.linux import proportional_bytes
    from bench.swarm import Swarm

    topic = create_topic(bootstrap_servers, 16)
    began_s = time.perf_counter()
    with Swarm(bootstrap_servers, topic, nodes, env={"BENCH_TOPIC": topic}) as swarm:
        found = swarm.wait_up()
        seconds = time.perf_counter() - began_s
        memory = sum(proportional_bytes(each["pid"]) for each in found["nodes"]) / 1e6
    return {"MB a node": memory / nodes, "s until all are up": seconds}


def by_calls(bootstrap_servers: str, calls: int) -> Point:
    from awoke import rpc
    from bench.rpc import service
    from bench.rpc_load import waiting

    options: dict[str, Any] = {"timeout_s": 120.0, "create_topics": True, "calls_max": calls + 10}
    with (
        service(Job(bootstrap_servers, "", "", 0), BENCH_THREADS="1") as name,
        rpc.Caller(name, bootstrap_servers, **options) as caller,
    ):
        caller.wait_until_served()
        began_s = time.perf_counter()
        found = waiting(caller, calls)
        seconds = time.perf_counter() - began_s
    return {"bytes a call": found["bytes_per_call"], "us to begin and cancel": seconds * 1e6 / calls}


CURVES: dict[str, Curve] = {
    "partitions": Curve("partitions", (1, 8, 64, 256, 1_000), by_partitions),
    "keys": Curve("keys under way", (1, 10, 100, 1_000, 10_000, 100_000), by_keys),
    "workers": Curve("workers", (1, 4, 16, 64), by_workers),
    "members": Curve("members of a group", (1, 4, 16, 32), by_members),
    "size": Curve("bytes of a message", (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000), by_size),
    "brokers": Curve("brokers", (1, 2, 3), by_brokers, lambda count: count),
    "nodes": Curve("nodes of a swarm", (1, 4, 16), by_nodes),
    "calls": Curve("waiting calls", (10, 1_000, 10_000, 100_000), by_calls),
}


def slope(points: dict[int, float]) -> float:
    """Returns the slope of the least-squares line through the logarithms: 0 is constant, 1 is linear."""
    pairs = [(math.log(x), math.log(y)) for x, y in points.items() if y > 0]
    middle_x, middle_y = (statistics.fmean(each) for each in zip(*pairs, strict=True))
    spread = sum((x - middle_x) ** 2 for x, _ in pairs)
    return sum((x - middle_x) * (y - middle_y) for x, y in pairs) / spread


def sentence(curve: Curve, measure: str, points: dict[int, float]) -> str:
    """Says how a measure grows."""
    found = slope(points)
    word = "falls" if found < -FLAT else "is constant" if found < FLAT else "is linear" if found > STEEP else "grows"
    first, last = points[min(points)], points[max(points)]
    return f"{measure} {word} in {curve.axis}: {number(first)} to {number(last)}, slope {found:+.2f}"


def run(name: str, bootstrap_servers: str, at: int) -> Point:
    """Measures one point in a process of its own."""
    command = [sys.executable, "-m", "bench.growth", "--curve", name, "--at", str(at)]
    command += ["--bootstrap-servers", bootstrap_servers]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=3 * TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name} at {at}: {done.stderr.strip()[-800:]}")
    result: Point = json.loads(done.stdout.splitlines()[-1])
    return result


def measure_curve(name: str, runs: int, points_max: int | None) -> dict[int, Point]:
    """Returns the medians of each point of a curve, or of its first ones."""
    curve, found = CURVES[name], dict[int, Point]()
    for at in curve.points[:points_max]:
        with brokers(None, curve.brokers(at)) as bootstrap_servers:
            print(f"{name}: {at}", file=sys.stderr, flush=True)
            points = [run(name, bootstrap_servers, at) for _ in range(runs)]
        found[at] = {measure: statistics.median(each[measure] for each in points) for measure in points[0]}
    return found


def plot(found: dict[str, dict[int, Point]]) -> None:
    """Draws each curve's first measure."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 4, figsize=(14, 6))
    for panel, (name, points) in zip(panels.flat, found.items(), strict=False):
        measure = next(iter(next(iter(points.values()))))
        panel.plot(list(points), [each[measure] for each in points.values()], marker="o", markersize=3)
        panel.set(xscale="log", yscale="log", xlabel=CURVES[name].axis, ylabel=measure)
    figure.tight_layout()
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Runs the command line: all curves, those that are named, or one point."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one run of each curve's first two points: no figures")
    parser.add_argument("--only", help="curves whose name contains this")
    parser.add_argument("--curve", choices=list(CURVES), help=argparse.SUPPRESS)
    parser.add_argument("--at", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--bootstrap-servers", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.curve:
        print(json.dumps(CURVES[options.curve].measure(options.bootstrap_servers, options.at)), flush=True)
        return
    names = [name for name in CURVES if options.only is None or options.only in name]
    runs, points_max = (1, 2) if options.quick else (options.runs, None)
    found = {name: measure_curve(name, runs, points_max) for name in names}
    for name, points in found.items():
        for measure in next(iter(points.values())):
            print(sentence(CURVES[name], measure, {at: each[measure] for at, each in points.items()}), flush=True)
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), "versions": versions(), "runs": options.runs, "curves": found}
    (RESULTS / "growth.json").write_text(json.dumps(document, indent=2) + "\n")
    if options.only is None and not options.quick:
        plot(found)


if __name__ == "__main__":
    main()
