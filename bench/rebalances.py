"""Rebalances in a loop under load: the process's resources before and after, messages lost or repeated."""

from __future__ import annotations

import argparse
import json
import sys
import time

from rich.console import Console
from rich.table import Table

from bench.harness import brokers, create_topic, unique
from bench.report import RESULTS, machine, versions
from tests.support.rebalances import PARTITIONS, Rebalances
from tests.support.resource_usage import ResourceUsage, resource_usage

WARM_UP_REBALANCES = 10


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.rebalances", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--rebalances", type=int, default=1_000)
    options = parser.parse_args()
    if options.rebalances <= WARM_UP_REBALANCES:
        parser.error(f"--rebalances must be more than {WARM_UP_REBALANCES}, which are not counted")
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        topic = create_topic(bootstrap_servers, PARTITIONS)
        rebalances, taken = Rebalances(bootstrap_servers, topic, unique("bench-rebalances")), dict[int, ResourceUsage]()
        began_s = time.monotonic()
        sent = rebalances.run(options.rebalances, lambda done: note(done, taken))
        seconds = time.monotonic() - began_s
    first, last = taken[WARM_UP_REBALANCES], taken[max(taken)]
    missing, repeated = rebalances.lost_and_repeated(sent)
    show(
        first, last, f"{max(taken)} rebalances in {seconds:.0f} s, {sent} messages, {missing} lost, {repeated} repeated"
    )
    RESULTS.mkdir(exist_ok=True)
    document = {
        "machine": machine(),
        "versions": versions(),
        "seconds": seconds,
        "sent": sent,
        "lost": missing,
        "repeated": repeated,
        "by_rebalances": {number: each._asdict() for number, each in taken.items()},
    }
    (RESULTS / "rebalances.json").write_text(json.dumps(document, indent=2) + "\n")
    if missing or last.threads > first.threads or last.descriptors > first.descriptors:
        sys.exit(1)


def note(done: int, taken: dict[int, ResourceUsage]) -> None:
    """Samples the process."""
    if done == WARM_UP_REBALANCES or done % 100 == 0:
        taken[done] = resource_usage()
        print(f"{done} rebalances: {taken[done]}", file=sys.stderr, flush=True)


def show(first: ResourceUsage, last: ResourceUsage, title: str) -> None:
    """Prints a table of the process's resources."""
    table = Table("", f"after {WARM_UP_REBALANCES}", "at the end", "difference", title=title)
    for name in ("threads", "descriptors", "resident_kb"):
        before, after = getattr(first, name), getattr(last, name)
        table.add_row(name, str(before), str(after), f"{after - before:+}")
    Console().print(table)


if __name__ == "__main__":
    main()
