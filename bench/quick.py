"""Eight of awoke's ratios to native programs, in a few minutes, beside those that were committed last.

It tells of a change that costs a lot, and fails for none: one run on a shared machine differs from the next by a tenth
or two. `--save` writes the figures to `bench/quick.json`, to be committed.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench import consume, produce, rpc, sync_produce
from bench.harness import Program, brokers, measure
from bench.report import machine, number

COMMITTED = Path(__file__).resolve().parent / "quick.json"
NATIVE = "native C"


class Part(NamedTuple):
    """The contestants of one program, of which the first is the native one."""

    program: Program
    contestants: tuple[str, ...]
    messages: int


PARTS = (
    Part(consume.PROGRAM, ("native C loop", "awoke batch values", "awoke function", "awoke async function"), 1_000_000),
    Part(produce.PROGRAM, ("native C loop", "awoke produce()", "awoke produce_many()"), 500_000),
    Part(sync_produce.PROGRAM, ("native C, linger 0", "awoke wait(), default linger"), 500),
    Part(rpc.PROGRAM, ("native produce-consume-produce-consume", "awoke call", "awoke acall"), 300),
)


def ratios(part: Part, bootstrap_servers: str, runs: int) -> dict[str, float]:
    """Runs a part. Returns the ratio to the native contestant of each other one, by its name.

    Raises:
        RuntimeError: a contestant failed.
    """
    program = part.program
    contestants = {name: program.contestants[name] for name in part.contestants}
    chosen = dataclasses.replace(program, contestants=contestants)
    report = measure(chosen, bootstrap_servers, part.messages, runs, None)
    if report.failures:
        raise RuntimeError(f"failed: {report.failures}")
    return {f"{program.name}: {name}": report.ratios(name)[NATIVE] for name in part.contestants[1:]}


def is_higher_better(row: str) -> bool:
    """Tells whether more is better in a row."""
    return next(part.program.is_higher_better for part in PARTS if row.startswith(f"{part.program.name}: "))


def show(found: dict[str, float], committed: dict[str, float]) -> None:
    """Prints the ratios beside those that were committed."""
    table = Table(title="awoke ÷ native C")
    for column in ("row", "now", "committed", "change", "better is"):
        table.add_column(column, justify="left" if column in ("row", "better is") else "right")
    for row, ratio in found.items():
        before = committed.get(row)
        change = "–" if before is None else f"{ratio / before - 1:+.0%}"
        table.add_row(row, number(ratio), number(before), change, "more" if is_higher_better(row) else "less")
    Console(width=None if Console().is_terminal else 120).print(table)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="write the figures to bench/quick.json")
    options = parser.parse_args()
    found: dict[str, float] = {}
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        for part in PARTS:
            found |= ratios(part, bootstrap_servers, options.runs)
    committed = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
    show(found, committed.get("ratios", {}))
    if committed:
        print(f"committed: {committed['date']}, {committed['processor']}")
    if options.save:
        document = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "processor": machine()["processor"],
            "runs": options.runs,
            "ratios": {row: round(ratio, 3) for row, ratio in found.items()},
        }
        COMMITTED.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
