"""Runs a handler that computes on one worker thread and on two: the gain of a Python without the GIL.

Embedded brokers, because the messages are few: what is measured is the handler. Run it with a free-threaded Python, and
with another one to compare.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import threading
import time

from bench.harness import REPOSITORY, rate, unique
from bench.report import Reference, Report, Result

PARTITIONS = 8
ROUNDS = 4_000
"""Steps of the computation for each message: about 0.2 ms."""
WARM_UP = 200
TIMEOUT_S = 300.0
TITLE = "A handler that computes, by number of worker threads"


def compute(rounds: int) -> int:
    """Computes in Python, and touches no object that threads share.

    The numbers are made anew by each call. Those that stand in code are objects of all threads, and to count the
    references to them makes two threads slower than one.
    """
    factor, increment, mask = map(int, ("1103515245", "12345", "2147483647"))
    state = 1
    for _ in range(rounds):
        state = (state * factor + increment) & mask
    return state


def run(workers: int, messages: int) -> Result:
    """Returns the messages per second of an app with this number of workers."""
    import awoke
    from awoke.testing import EmbeddedCluster, running

    app = awoke.App(unique("bench"), workers=workers, kafka={"auto.offset.reset": "earliest"})
    changed, seen, times_s = threading.Lock(), 0, [0.0, 0.0]
    ended = threading.Event()

    @app.on("computations")
    def handle(message: awoke.Message[bytes]) -> None:
        nonlocal seen
        compute(ROUNDS)
        with changed:
            seen += 1
            if seen == WARM_UP:
                times_s[0] = time.monotonic()
            elif seen == WARM_UP + messages:
                times_s[1] = time.monotonic()
                ended.set()

    with EmbeddedCluster() as cluster:
        cluster.create_topic("computations", PARTITIONS)
        count = WARM_UP + messages
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            handles = [producer.produce("computations", b"value", partition=each % PARTITIONS) for each in range(count)]
            awoke.wait_all(handles, TIMEOUT_S)
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            if not ended.wait(TIMEOUT_S):
                raise TimeoutError("not all messages arrived")
    return rate(times_s[1] - times_s[0], messages)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.free_threading", description=TITLE)
    parser.add_argument("--bootstrap-servers", help="ignored: the brokers are embedded")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.workers:
        print(json.dumps(run(options.workers, options.messages)), flush=True)
        return
    has_gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    title = f"{TITLE}, {'with' if has_gil else 'without'} the GIL"
    report = Report("free_threading", title, "messages_per_s", True, (Reference("1 worker", ("1 worker",)),))
    for _ in range(options.runs):
        for workers in (1, 2):
            command = [sys.executable, "-m", "bench.free_threading", "--workers", str(workers)]
            command += ["--messages", str(options.messages)]
            done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
            name = f"{workers} worker{'s' if workers > 1 else ''}"
            report.results.setdefault(name, []).append(json.loads(done.stdout))
    report.write({"messages": options.messages, "runs": options.runs, "has_gil": has_gil})


if __name__ == "__main__":
    main()
