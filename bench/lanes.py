"""Several messages of a partition at once: the gain for waiting handlers, the order of keys, the repeats after a kill.

1. A handler that waits 10 ms, one partition: one job at a time, and 64 lanes, `def` and `async def`.
2. A million messages with random handler times and one failure in a hundred: each key's order is checked.
3. A process that is killed in the middle: messages lost and messages repeated. Also the number of repeats without the
   commit's metadata, which lists the messages done beyond the offset.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import awoke
from awoke.testing import running
from bench.harness import brokers, create_topic, unique
from bench.report import RESULTS, machine, versions
from tests.support.lanes import Done, Killed, fill, wait_for_lines
from tests.support.processes import Process
from tests.support.waiting import awork_for, work_for

WAIT_S = 0.010
LANES = 64
KEYS = 10_000
WITHIN_S = 1_800.0


def waiting(bootstrap_servers: str, messages: int, concurrency: awoke.Concurrency, is_async: bool) -> dict[str, float]:
    """Returns the messages per second of a waiting handler, from the begin of the first to the end of the last."""
    topic = create_topic(bootstrap_servers, 1)
    fill(bootstrap_servers, topic, messages, KEYS)
    app = awoke.App(unique("bench-lanes"), bootstrap_servers=bootstrap_servers, workers=LANES)
    lock, over, began_s, done = threading.Lock(), threading.Event(), [0.0], [0]

    def begin() -> None:
        if not began_s[0]:
            began_s[0] = time.perf_counter()

    def end() -> None:
        with lock:
            done[0] += 1
            if done[0] == messages:
                over.set()

    def handle(message: awoke.Message[bytes]) -> None:
        begin()
        work_for(WAIT_S)
        end()

    async def handle_async(message: awoke.Message[bytes]) -> None:
        begin()
        await awork_for(WAIT_S)
        end()

    app.on(topic, concurrency=concurrency)(handle_async if is_async else handle)
    with running(app):
        assert over.wait(WITHIN_S)
    return {"per_s": messages / (time.perf_counter() - began_s[0])}


def in_order(bootstrap_servers: str, messages: int) -> dict[str, float]:
    """Runs the scenario's app to its end: counts messages out of order, lost or repeated."""
    topic = create_topic(bootstrap_servers, 1)
    fill(bootstrap_servers, topic, messages, KEYS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "done"
        env = {"LANES_TOPIC": topic, "LANES_LOG": str(file), "LANES_JOBS": str(LANES)}
        began_s = time.perf_counter()
        arguments = ("run", "tests.scenarios.lanes_app:app", "--bootstrap-servers", bootstrap_servers)
        with Process(*arguments, env=env) as process:
            wait_for_lines(file, messages, WITHIN_S, process)
            seconds = time.perf_counter() - began_s
        done = Done(file)
    distinct = len(set(done.offsets))
    return {
        "messages": messages,
        "seconds": seconds,
        "lost": messages - distinct,
        "repeated": len(done.offsets) - distinct,
        "out_of_order": done.out_of_order(),
    }


def killed(bootstrap_servers: str, messages: int) -> dict[str, float]:
    """Runs the app and kills it in the middle."""
    topic = create_topic(bootstrap_servers, 1)
    fill(bootstrap_servers, topic, messages, KEYS)
    with tempfile.TemporaryDirectory() as folder:
        env = {"LANES_JOBS": str(LANES), "LANES_MEAN_MS": "5", "AWOKE_COMMIT_INTERVAL_S": "0.1"}
        run = Killed(bootstrap_servers, topic, messages, Path(folder), **env)
        run.run(messages // 2, WITHIN_S)
        first, second = run.done
        return {
            "messages": messages,
            "lost": run.lost,
            "out_of_order": first.out_of_order() + second.out_of_order(),
            "repeated": run.repeated,
            "repeated_without_metadata": run.done_beyond,
        }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.lanes", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=1_000_000, help="of the second part; the third has a tenth")
    options = parser.parse_args()
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        one, many = awoke.by_partition(), awoke.by_key(LANES)
        ways: dict[str, Callable[[], dict[str, float]]] = {
            "def, one job at a time": lambda: waiting(bootstrap_servers, 300, one, False),
            "def, 64 lanes": lambda: waiting(bootstrap_servers, 20_000, many, False),
            "async def, one job at a time": lambda: waiting(bootstrap_servers, 300, one, True),
            "async def, 64 lanes": lambda: waiting(bootstrap_servers, 20_000, many, True),
            "async def, 1,000 lanes": lambda: waiting(bootstrap_servers, 100_000, awoke.by_key(1_000), True),
        }
        speeds = {name: way()["per_s"] for name, way in ways.items()}
        ordered = in_order(bootstrap_servers, options.messages)
        after_kill = killed(bootstrap_servers, max(10_000, options.messages // 10))
    show(speeds, ordered, after_kill)
    RESULTS.mkdir(exist_ok=True)
    document: dict[str, Any] = {"machine": machine(), "versions": versions(), "waiting_per_s": speeds}
    document |= {"in_order": ordered, "killed": after_kill}
    (RESULTS / "lanes.json").write_text(json.dumps(document, indent=2) + "\n")


def show(speeds: dict[str, float], ordered: dict[str, float], after_kill: dict[str, float]) -> None:
    """Prints the tables."""
    table = Table("a handler that waits 10 ms", "messages per s", "÷ one at a time", title="One partition")
    one = {False: speeds["def, one job at a time"], True: speeds["async def, one job at a time"]}
    for name, per_s in speeds.items():
        table.add_row(name, f"{per_s:,.0f}", f"{per_s / one[name.startswith('async')]:.1f}")
    console = Console()
    console.print(table)
    for title, figures in (("to the end", ordered), ("killed in the middle", after_kill)):
        console.print(title + ": " + ", ".join(f"{name} {value:,.0f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
