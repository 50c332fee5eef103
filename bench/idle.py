"""Lets an app idle, and counts the wake-ups of each of its threads."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench.harness import REPOSITORY, brokers, create_topic, delete_topic, unique
from bench.report import Report
from tests.support.waiting import elapse

PARTITIONS = 8
SETTLE_S = 5.0
STARTED_WITHIN_S = 60.0
LIBRDKAFKA_PREFIX = "rdk:"


@dataclass(frozen=True)
class ThreadCount:
    """The number of times that a thread has gone to sleep voluntarily, and so woken up, since it began."""

    name: str
    switches: int

    @property
    def is_ours(self) -> bool:
        """Awoke's threads and Python's, named for the process before Python 3.14; not librdkafka's."""
        return not self.name.startswith(LIBRDKAFKA_PREFIX)


Counts = dict[int, ThreadCount]


def app(bootstrap_servers: str, topic: str) -> None:
    """Runs an app with one route until standard input ends, in its own process."""
    import awoke
    import awoke.testing

    assigned = threading.Event()
    idle = awoke.App("bench", group=unique("bench-idle"))
    idle.events.subscribe("partitions.assigned", lambda event: assigned.set())

    @idle.on(topic)
    def handle(message: awoke.Message[bytes]) -> None:
        raise AssertionError("the topic is empty")

    with awoke.testing.running(idle, bootstrap_servers=bootstrap_servers):
        if not assigned.wait(STARTED_WITHIN_S):
            raise TimeoutError("no partition was assigned")
        print("READY", flush=True)
        sys.stdin.read()


def count(process_id: int) -> Counts:
    """Returns the threads of a process by their ids."""
    counts: Counts = {}
    for folder in Path(f"/proc/{process_id}/task").iterdir():
        try:
            fields = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
        except FileNotFoundError:
            continue  # The thread has ended meanwhile.
        counts[int(folder.name)] = ThreadCount(fields["Name"], int(fields["voluntary_ctxt_switches"]))
    return counts


def measure(bootstrap_servers: str, topic: str, seconds: float) -> dict[str, float]:
    """Returns the wake-ups per second of every thread of an idle app, by name and thread id, and the sums."""
    program = "import sys; from bench.idle import app; app(sys.argv[1], sys.argv[2])"
    command = [sys.executable, "-c", program, bootstrap_servers, topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.readline() != b"READY\n":
                raise RuntimeError("the app did not start; see its error above")
            elapse(SETTLE_S, "the requests of the start come to their end")
            before, begin_s = count(process.pid), time.monotonic()
            elapse(seconds, "wake-ups are counted for this time")
            after, passed_s = count(process.pid), time.monotonic() - begin_s
            process.stdin.close()
            process.wait(STARTED_WITHIN_S)
        finally:
            process.kill()
    return summed(before, after, passed_s)


def summed(before: Counts, after: Counts, passed_s: float) -> dict[str, float]:
    """Returns the differences per second; a thread that began meanwhile counts from zero."""
    rates: dict[str, float] = {"ours": 0.0, "librdkafka's": 0.0}
    for thread_id, now in sorted(after.items()):
        earlier = before.get(thread_id)
        per_second = (now.switches - (earlier.switches if earlier else 0)) / passed_s
        rates["ours" if now.is_ours else "librdkafka's"] += per_second
        rates[f"  {now.name} #{thread_id - min(after)}"] = per_second
    return rates


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description="Wake-ups of an idle app")
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--messages", type=int, help="ignored: an idle topic has none")
    options = parser.parse_args()
    if options.seconds <= 0 or options.runs < 1:
        parser.error("--seconds must be positive and --runs at least 1")
    title = f"An idle app on {PARTITIONS} partitions"
    report = Report("idle", title, "wake_ups_per_s", is_higher_better=False)
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        topic = create_topic(bootstrap_servers, PARTITIONS)
        for _ in range(options.runs):
            for name, rate in measure(bootstrap_servers, topic, options.seconds).items():
                report.results.setdefault(name, []).append({"wake_ups_per_s": rate})
        delete_topic(bootstrap_servers, topic)
    report.write({"seconds": options.seconds, "runs": options.runs, "partitions": PARTITIONS})


if __name__ == "__main__":
    main()
