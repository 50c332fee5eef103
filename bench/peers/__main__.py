"""awoke beside other frameworks: one function for each message, and the same with a result that is produced.

Each peer runs in an environment of its own under `.venvs/peers`, made on first use: their dependencies contradict each
other. A run ends with the last call of the function, or, with results, when the output topic has all of them.
`--only NAME` runs one peer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.environments import python_with
from bench.harness import REPOSITORY, brokers, count, create_topic, delete_topic, fill, unique
from bench.report import RESULTS, machine, number, versions
from tests.support.waiting import wait_until

PARTITIONS = 8
TIMEOUT_S = 300.0


class Peer(NamedTuple):
    """A framework: its module here, and what is installed for it; nothing for this environment."""

    module: str
    requirement: str = ""


PEERS = {
    "awoke": Peer("awoke_app"),
    "confluent-kafka poll()": Peer("confluent_loop"),
    "Quix Streams": Peer("quix_app", "quixstreams==3.28.1"),
    "Arroyo": Peer("arroyo_app", "sentry-arroyo==2.48.0"),
    "Faust": Peer("faust_app", "faust-streaming==0.15.3"),
    "kafka-python": Peer("kafka_python_loop", "kafka-python==3.0.12"),
}


def measure(peer: Peer, bootstrap_servers: str, topic: str, messages: int, *, produces: bool) -> float:
    """Returns a peer's messages per second.

    Raises:
        RuntimeError: it ended early, or was not done in time.
    """
    output = create_topic(bootstrap_servers, PARTITIONS) if produces else ""
    python = python_with(f"peers/{peer.module}", *([peer.requirement] if peer.requirement else []))
    command = [str(python), "-m", f"bench.peers.{peer.module}", bootstrap_servers, topic, unique("peer")]
    command += [output or "-", str(messages)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            moments = moments_of(process)
            if output:
                # No event tells that a record of another process has arrived.
                wait_until(
                    lambda: count(bootstrap_servers, output, PARTITIONS) >= messages,
                    "all results have arrived",
                    TIMEOUT_S,
                    every_s=0.01,
                )
                moments["LAST"] = time.time()
        finally:
            process.kill()
    if output:
        delete_topic(bootstrap_servers, output)
    return messages / (moments["LAST"] - moments["FIRST"])


def moments_of(process: subprocess.Popen[str]) -> dict[str, float]:
    """Reads when a peer has had its first and its last message."""
    assert process.stdout is not None
    assert process.stderr is not None
    moments: dict[str, float] = {}
    for line in process.stdout:
        name, _, at = line.partition(" ")
        if name in ("FIRST", "LAST"):
            moments[name] = float(at)
        if "LAST" in moments:
            return moments
    raise RuntimeError(f"it ended early: {process.stderr.read()[-800:]}")


def show(title: str, found: dict[str, list[float]]) -> None:
    """Prints the medians, and how many times faster awoke is."""
    table = Table(title=title)
    for column in ("framework", "messages per s", "least", "most", "awoke is faster by"):
        table.add_column(column, justify="left" if column == "framework" else "right")
    own = statistics.median(found["awoke"]) if found.get("awoke") else None
    for name, rates in found.items():
        if rates:
            median = statistics.median(rates)
            figures = [median, min(rates), max(rates), None if own is None else own / median]
            table.add_row(name, *map(number, figures))
    Console(width=None if Console().is_terminal else 120).print(table)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="peers whose name contains this")
    options = parser.parse_args()
    names = [name for name in PEERS if options.only is None or options.only in name]
    titles = {False: "One function for each message, 100 B", True: "Consume, call a function, produce, 100 B"}
    found: dict[str, dict[str, list[float]]] = {title: {name: [] for name in names} for title in titles.values()}
    failed = False
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        topic = create_topic(bootstrap_servers, PARTITIONS)
        fill(bootstrap_servers, topic, PARTITIONS, options.messages)
        for produces, title in titles.items():
            for run in range(options.runs):
                for name in names:
                    print(f"run {run + 1} of {options.runs}: {name}, {title}", file=sys.stderr, flush=True)
                    try:
                        rate = measure(PEERS[name], bootstrap_servers, topic, options.messages, produces=produces)
                        found[title][name].append(rate)
                    except (RuntimeError, AssertionError) as error:
                        failed = True
                        print(f"{name} failed: {error}", file=sys.stderr, flush=True)
    for title, rates in found.items():
        show(title, rates)
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), "versions": versions(), "messages": options.messages, "rates": found}
    (RESULTS / "peers.json").write_text(json.dumps(document, indent=2) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
