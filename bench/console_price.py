"""The price of the console: messages per second with `console=True` beside without, in turn in one process.

The handlers only count. `statistics` is an app without a console, but with librdkafka's statistics, which the console
turns on. A ratio is the median over pairs of runs that follow each other; beside other work it is noise of a hundredth
or two. `console ms` is counted: the processor time of the thread that makes the reports, from the start of the app to
the last message. The last row is an idle app: the reports that it sends.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from typing import Any

import awoke
import awoke.testing
from awoke.admin import Admin
from awoke.console.topics import ConsoleTopics
from bench.handlers import PARTITIONS, SETTINGS, TIMEOUT_S, fill
from bench.harness import brokers, create_topic, delete_topic, unique
from bench.report import Report
from tests.support.waiting import Collected, elapse, wait_until

KEYS = 5_000
KINDS: dict[str, dict[str, Any]] = {
    "off": {},
    "statistics": {"kafka": {**SETTINGS, "statistics.interval.ms": "5000"}},
    "console": {"console": True},
}
ROUTES: dict[str, dict[str, Any]] = {"plain": {}, "lanes": {"concurrency": awoke.by_key(16)}}
Figures = dict[str, float]


def console_cpu_s() -> float:
    """Returns the processor time of the console's thread of this process since its start; 0 without a console."""
    threads = [each.ident for each in threading.enumerate() if each.name == "awoke-console"]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(each)) for each in threads if each is not None)


def run(bootstrap_servers: str, topic: str, messages: int, route: dict[str, Any], kind: dict[str, Any]) -> Figures:
    """Processes the messages of a topic. Returns messages per second, and microseconds of processor time a message."""
    app = awoke.App(unique("bench"), **{"kafka": SETTINGS, **kind})
    began: list[tuple[float, float]] = []

    @app.on(topic, **route)
    def handle(message: awoke.Message[bytes]) -> None:
        if not began:
            began.append((time.perf_counter(), time.process_time()))

    with awoke.testing.running(app, bootstrap_servers=bootstrap_servers) as runner:

        def stored() -> int:
            return sum(each.stored or 0 for each in runner.partitions())

        # No event tells that an offset is stored.
        wait_until(lambda: stored() >= messages, "all messages are done", TIMEOUT_S, every_s=0.002)
        seconds, cpu_s = time.perf_counter() - began[0][0], time.process_time() - began[0][1]
        console_ms = console_cpu_s() * 1e3
    figures = {"messages_per_s": messages / seconds, "cpu_us": cpu_s * 1e6 / messages, "cpu_ms": cpu_s * 1e3}
    return {**figures, "console_ms": console_ms}


def compare(report: Report, bootstrap_servers: str, messages: int, runs: int) -> None:
    """Runs each kind of each route in turn, and adds the ratios to the run without a console before or after it."""
    topic = create_topic(bootstrap_servers, PARTITIONS)
    fill(bootstrap_servers, topic, messages, KEYS)
    for name, route in ROUTES.items():
        found: dict[str, list[Figures]] = {kind: [] for kind in KINDS}
        for number in range(runs + 1):
            kinds = list(KINDS)[:: 1 if number % 2 else -1]  # A machine that slows down wrongs each kind as often.
            for kind in kinds:
                print(f"run {number} of {runs}: {name}, {kind}", file=sys.stderr, flush=True)
                figures = run(bootstrap_servers, topic, messages, route, KINDS[kind])
                if number:  # The first one warms up.
                    found[kind].append(figures)
        for kind, each in found.items():
            report.results[f"{name}, {kind}"] = [*each, ratios(each, found["off"])]
    delete_topic(bootstrap_servers, topic)


def ratios(these: list[Figures], off: list[Figures]) -> Figures:
    """Returns the medians of the ratios of pairs."""
    pairs = list(zip(these, off, strict=True))
    return {
        "ratio": statistics.median(on["messages_per_s"] / without["messages_per_s"] for on, without in pairs),
        "cpu_ratio": statistics.median(on["cpu_us"] / without["cpu_us"] for on, without in pairs),
    }


def idle(bootstrap_servers: str, seconds: float) -> Figures:
    """Returns how many reports an idle app sends in ten seconds."""
    topic = create_topic(bootstrap_servers, PARTITIONS)
    app = awoke.App(unique("bench"), console=True)
    assigned = Collected[Any]()
    app.events.subscribe("partitions.assigned", assigned.add)
    app.on(topic)(lambda message: None)
    with awoke.testing.running(app, bootstrap_servers=bootstrap_servers), Admin(bootstrap_servers) as admin:
        assigned.wait_for(1)
        admin.wait_for_topic(ConsoleTopics.of(app.name).reports, 30.0)
        elapse(5.0, "the changes of the start are reported")

        def sent() -> int:
            return sum(admin.end_offsets(ConsoleTopics.of(app.name).reports, 10.0).values())

        before, begin_s = sent(), time.monotonic()
        elapse(seconds, "reports are counted for this time")
        rate = (sent() - before) / (time.monotonic() - begin_s)
    delete_topic(bootstrap_servers, topic)
    return {"reports_in_10_s": rate * 10}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.console_price", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=60.0, help="for which an idle app is watched")
    options = parser.parse_args()
    if options.messages < 1 or options.runs < 1 or options.seconds <= 0:
        parser.error("--messages and --runs must be at least 1, --seconds positive")
    report = Report("console_price", "The price of the console", "messages_per_s", is_higher_better=True)
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        compare(report, bootstrap_servers, options.messages, options.runs)
        report.results["an idle app"] = [idle(bootstrap_servers, options.seconds)]
    report.write({"messages": options.messages, "runs": options.runs, "seconds": options.seconds})


if __name__ == "__main__":
    main()
