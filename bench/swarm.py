"""The swarm: the time to notice and replace a dead process, the gain over threads, shared memory, the cost of watching.

1. Repeated `kill -9` of nodes: the time from the signal to the supervisor's notice, and to the next assignment.
2. A handler that computes: one process with two threads, one node, two nodes.
3. Memory: eight nodes of an app of about 200 MB beside eight processes of their own.
4. The supervisor, when nothing happens: wake-ups per minute, and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import awoke
from awoke.cli.swarm import ask
from awoke.swarm.linux import proportional_bytes
from bench.harness import brokers, create_topic, unique
from bench.report import RESULTS, machine, versions
from tests.support.processes import Process
from tests.support.waiting import became, elapse, wait_until

TARGET = "bench.swarm_app:app"
PARTITIONS = 8
DRAINED_WITHIN_S = 600.0
KAFKA = ("--kafka", "session.timeout.ms=10000", "--kafka", "heartbeat.interval.ms=500")


class Swarm:
    """A swarm of the benchmark's app, for the length of a `with` block."""

    def __init__(self, bootstrap_servers: str, topic: str, nodes: int, *options: str, env: dict[str, str]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="awoke-bench-"))
        self._socket = str(folder / "swarm.sock")
        arguments = ["run", TARGET, "--nodes", str(nodes), "--socket", self._socket, "-b", bootstrap_servers]
        self.nodes = nodes
        group = {"BENCH_TOPIC": topic, "AWOKE_GROUP": unique("bench")}
        self.process = Process(*arguments, "--log-level", "error", *KAFKA, *options, env={**group, **env})

    def status(self) -> dict[str, Any]:
        """Returns the supervisor's state."""
        return ask(TARGET, self._socket, "status")

    def wait(self, is_so: Any, within_s: float = 60.0) -> dict[str, Any]:
        """Asks until the condition holds."""
        last: list[dict[str, Any]] = []

        def is_reached() -> bool:
            try:
                last[:] = [self.status()]
            except awoke.AwokeError:
                return False  # The supervisor does not answer yet.
            return bool(is_so(last[0]))

        if not became(is_reached, within_s, every_s=0.005):
            raise TimeoutError(self.process.output[-3_000:])
        return last[0]

    def wait_up(self) -> dict[str, Any]:
        """Waits until every node is up and has its assignment."""
        return self.wait(
            lambda found: (
                len(found["nodes"]) == self.nodes
                and all(each["state"] == "up" and each["assigned_ns"] for each in found["nodes"])
            )
        )

    def __enter__(self) -> Swarm:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.is_running:
            self.process.signal(signal.SIGTERM)
            self.process.wait()
        self.process.__exit__(None, None, None)


def kills(bootstrap_servers: str, count: int) -> dict[str, float]:
    """Returns the ms from a kill to the process's end, the supervisor's notice and the node's next assignment."""
    topic = create_topic(bootstrap_servers, PARTITIONS)
    options = ("--restarts-max", "1000000", "--restart-backoff-s", "0")
    notices, returns, kernels = [], [], []
    chance = random.Random(6)
    with Swarm(bootstrap_servers, topic, 2, *options, env={}) as swarm:
        found = swarm.wait_up()
        for _ in range(count):
            node = chance.choice(found["nodes"])
            pidfd = os.pidfd_open(node["pid"])
            watch = select.poll()
            watch.register(pidfd, select.POLLIN)
            began_ns = time.monotonic_ns()
            os.kill(node["pid"], signal.SIGKILL)
            watch.poll()
            # Before this the kernel is still ending the process, so no other process can notice its end.
            kernels.append((time.monotonic_ns() - began_ns) / 1e6)
            os.close(pidfd)
            found = swarm.wait(lambda found, began_ns=began_ns: found["last_death_ns"] > began_ns)
            notices.append((found["last_death_ns"] - began_ns) / 1e6)
            found = swarm.wait_up()
            back_ns = next(each["assigned_ns"] for each in found["nodes"] if each["node"] == node["node"])
            returns.append((back_ns - began_ns) / 1e6)
    return {
        "kills": count,
        "over_p50_ms": statistics.median(kernels),
        "over_p99_ms": sorted(kernels)[int(0.99 * (count - 1))],
        "notice_p50_ms": statistics.median(notices),
        "notice_p99_ms": sorted(notices)[int(0.99 * (count - 1))],
        "assigned_p50_ms": statistics.median(returns),
        "assigned_p99_ms": sorted(returns)[int(0.99 * (count - 1))],
    }


def computing(bootstrap_servers: str, messages: int, loops: int) -> dict[str, float]:
    """Returns the messages per second of a handler that computes."""
    found = {}
    for name, nodes, workers in (("1 process, 2 threads", 0, 2), ("1 node", 1, 1), ("2 nodes", 2, 1)):
        topic = create_topic(bootstrap_servers, PARTITIONS)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "done"
            env = {"BENCH_DONE": str(file), "BENCH_LOOPS": str(loops), "BENCH_TOPIC": topic}
            env["AWOKE_GROUP"] = unique("bench")
            worker = ("--workers", str(workers))
            if nodes:
                with Swarm(bootstrap_servers, topic, nodes, *worker, env=env) as swarm:
                    swarm.wait_up()
                    elapse(4, "the group comes to rest")
                    found[name] = drain(bootstrap_servers, topic, file, messages)
            else:
                arguments = ("run", TARGET, "-b", bootstrap_servers, "--log-level", "error", *worker)
                with Process(*arguments, env=env) as process:
                    elapse(6, "the app starts, and its group comes to rest")
                    found[name] = drain(bootstrap_servers, topic, file, messages)
                    process.signal(signal.SIGTERM)
                    process.wait()
    return found


def drain(bootstrap_servers: str, topic: str, file: Path, messages: int) -> float:
    """Sends messages and waits until all are done. Returns the messages per second."""
    with awoke.Producer(bootstrap_servers) as producer:
        producer.produce_many(topic, [awoke.Record(b"x", partition=each % PARTITIONS) for each in range(messages)])
        producer.flush()
    first = file.stat().st_size
    began_s = time.perf_counter()
    # Another process writes the file, and sends no event.
    wait_until(lambda: file.stat().st_size >= messages, "all messages are done", DRAINED_WITHIN_S, every_s=0.001)
    return (messages - first) / (time.perf_counter() - began_s)


def sharing(bootstrap_servers: str, nodes: int, objects: int) -> dict[str, float]:
    """Returns the megabytes, with each shared page counted once, of a swarm and of as many separate processes."""
    topic = create_topic(bootstrap_servers, PARTITIONS)
    env = {"BENCH_OBJECTS": str(objects), "BENCH_TOPIC": topic}
    with Swarm(bootstrap_servers, topic, nodes, env=env) as swarm:
        found = swarm.wait_up()
        elapse(5, "the memory comes to rest")
        pids = [each["pid"] for each in found["nodes"]]
        children = Path(f"/proc/{found['pid']}/task/{found['pid']}/children").read_text().split()
        together = sum(proportional_bytes(pid) for pid in {*pids, *map(int, children)})
        of_nodes = sum(map(proportional_bytes, pids))
    arguments = ("run", TARGET, "-b", bootstrap_servers, "--log-level", "error", "--workers", "4")
    processes = [Process(*arguments, env={**env, "AWOKE_GROUP": unique("bench")}) for _ in range(nodes)]
    try:
        elapse(20, "the processes start, and their memory comes to rest")
        apart = sum(proportional_bytes(each.pid) for each in processes)
    finally:
        for each in processes:
            each.signal(signal.SIGTERM)
        for each in processes:
            each.__exit__(None, None, None)
    return {
        "nodes": nodes,
        "swarm_mb": of_nodes / 1e6,
        "swarm_with_mold_mb": together / 1e6,
        "processes_mb": apart / 1e6,
        "ratio": of_nodes / apart,
    }


def idle(bootstrap_servers: str, seconds: float) -> dict[str, float]:
    """Returns the supervisor's wake-ups per minute, and its memory."""
    topic = create_topic(bootstrap_servers, PARTITIONS)
    with Swarm(bootstrap_servers, topic, 2, env={}) as swarm:
        swarm.wait_up()
        elapse(6, "the swarm comes to rest")
        before = swarm.status()
        elapse(seconds, "wake-ups are counted for this time")
        after = swarm.status()
    wakes = after["wakes"] - before["wakes"] - 3  # Those of this query: connection, request, answer.
    return {"wakes_per_minute": wakes * 60 / seconds, "memory_mb": after["memory_bytes"] / 1e6, "nodes": 2}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.swarm", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=20_000)
    options = parser.parse_args()
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        parts = {
            "kills": kills(bootstrap_servers, options.kills),
            "computing": computing(bootstrap_servers, options.messages, 10_000),
            "sharing": sharing(bootstrap_servers, 8, 900_000),
            "idle": idle(bootstrap_servers, 30.0),
        }
    show(parts)
    RESULTS.mkdir(exist_ok=True)
    document: dict[str, Any] = {"machine": machine(), "versions": versions(), **parts}
    (RESULTS / "swarm.json").write_text(json.dumps(document, indent=2) + "\n")


def show(parts: dict[str, dict[str, float]]) -> None:
    """Prints the tables."""
    console = Console()
    for name, figures in parts.items():
        table = Table(name, "")
        for word, value in figures.items():
            table.add_row(word, f"{value:,.2f}")
        console.print(table)


if __name__ == "__main__":
    main()
