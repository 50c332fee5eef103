"""Ordered append from many threads: awoke's sequencer, one condition and striped conditions, in Rust and in Python.

The experiment is that of Apache IoTDB's page on its log manager: producers take the next index, append it in order, and
think. The page's figures are printed, too. A second part sends the entries over loopback TCP to a follower, unordered
and in order.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import awoke
from bench.report import RESULTS, machine, number, percentile, versions
from tests.support.waiting import elapse, work_for

REPOSITORY = Path(__file__).resolve().parents[1]
PLOT = REPOSITORY / "bench" / "plots" / "ordered_append.svg"

PRODUCERS = (1, 2, 4, 10, 50, 100, 200, 500, 1_000, 2_000)
PYTHON_PRODUCERS = (1, 2, 4, 10, 50, 100, 200, 500)
FOLLOWER_PRODUCERS = (10, 50, 200)
THINK_MS = (0, 1, 5)
CONDITIONS = (1, 10, 100, 1_000)

PAGE = {1: (1_100_000, 1_100_000), 4: (95_561, 158_491), 10: (32_000, 158_000), 50: (6_900, 147_000),
        100: (3_500, 147_000), 200: (1_800, 128_000), 500: (861, 16_000)}  # fmt: skip
"""The page's Table 1 without think time, appends/s by producers: with one condition, with the best number of them."""

Cell = dict[str, Any]


def rust(part: str, *arguments: str) -> list[Cell]:
    """Returns the cells that the native program measured."""
    build = ["cargo", "build", "--release", "--quiet", "--locked", "-p", "awoke-bench-ordered"]
    subprocess.run(build, cwd=REPOSITORY, check=True)
    program = [str(REPOSITORY / "target" / "release" / "ordered"), part, *arguments]
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Gaps:
    """Time from an append to the next one, of every 16th; noted in order, by one thread at a time."""

    def __init__(self) -> None:
        self._before_ns = 0
        self._found_ns: list[int] = []

    def note(self, run: Iterable[int]) -> None:
        """Notes that these indexes were appended."""
        for index in run:
            place = index & 15
            if place == 0:
                self._before_ns = time.monotonic_ns()
            elif place == 1:
                self._found_ns.append(time.monotonic_ns() - self._before_ns)

    def p99_us(self) -> float | None:
        """Returns the 99th percentile in microseconds."""
        return percentile(self._found_ns, 99) / 1e3 if self._found_ns else None


class Conditions:
    """Entry `i` waits on condition `(i - 1) mod k`, appending `i` wakes `i mod k`; one lock."""

    def __init__(self, conditions: int, gaps: Gaps) -> None:
        self._gaps = gaps
        lock = threading.Lock()
        self._conditions = [threading.Condition(lock) for _ in range(conditions)]
        self._lock = lock
        self._appended = 0

    def append(self, index: int) -> None:
        """Waits for the entry before, and appends."""
        with self._lock:
            condition = self._conditions[(index - 1) % len(self._conditions)]
            while self._appended != index:
                condition.wait()
            self._gaps.note((index,))
            self._appended += 1
            self._conditions[index % len(self._conditions)].notify_all()


def waits(gaps: Gaps) -> Callable[[int], object]:
    """Makes awoke's sequencer, with producers that wait for their own entries."""
    sequencer: awoke.Sequencer[int] = awoke.Sequencer(gaps.note)
    return lambda index: sequencer.append(index, index)


def deposits(gaps: Gaps) -> Callable[[int], object]:
    """Makes awoke's sequencer, with producers that deposit their entries."""
    sequencer: awoke.Sequencer[int] = awoke.Sequencer(gaps.note)
    return lambda index: sequencer.deposit(index, index)


def python_designs() -> Iterable[tuple[str, int, Callable[[int], object], Gaps]]:
    """Yields name, number of conditions, appending function and measurements of each design."""
    for conditions in (1, 1_000):
        gaps = Gaps()
        yield "striped", conditions, Conditions(conditions, gaps).append, gaps
    for name, make in (("awoke, waits", waits), ("awoke, deposits", deposits)):
        gaps = Gaps()
        yield name, 0, make(gaps), gaps


def python_cell(append: Callable[[int], object], gaps: Gaps, producers: int, think_ms: int, seconds: float) -> Cell:
    """Measures a number of Python threads for a number of seconds."""
    indexes, is_over, start = itertools.count(), False, threading.Barrier(producers + 1)

    def produce() -> None:
        start.wait()
        while not is_over:
            append(next(indexes))
            if think_ms:
                work_for(think_ms / 1_000)

    threads = [threading.Thread(target=produce) for _ in range(producers)]
    for thread in threads:
        thread.start()
    start.wait()
    before, began_s, first = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), next(indexes)
    append(first)
    elapse(seconds, "appends are counted for this time")
    last, took_s = next(indexes), time.perf_counter() - began_s
    after = resource.getrusage(resource.RUSAGE_SELF)
    is_over = True
    append(last)
    for thread in threads:
        thread.join()
    switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw
    appended = max(1, last - first)
    return {"per_s": appended / took_s, "switches_per_append": switches / appended, "p99_us": gaps.p99_us()}


def python(seconds: float, producers: Iterable[int], think_ms: Iterable[int]) -> list[Cell]:
    """All cells of the part in Python."""
    cells = []
    for think, count in itertools.product(think_ms, producers):
        for design, conditions, append, gaps in python_designs():
            print(f"python: {design} {conditions or ''}, {count} producers, {think} ms", file=sys.stderr, flush=True)
            cell = python_cell(append, gaps, count, think, seconds)
            cells.append(
                {"design": design, "conditions": conditions, "producers": count, "think_ms": think, **cell},
            )
    return cells


def name_of(cell: Cell) -> str:
    """A contestant."""
    return f"{cell['conditions']} conditions" if cell["conditions"] else str(cell["design"])


def show(title: str, cells: list[Cell], think_ms: int, with_page: bool) -> None:
    """Appends/s by producers and contestant, with switches per append and p99."""
    chosen = [cell for cell in cells if cell["think_ms"] == think_ms]
    names = list(dict.fromkeys(name_of(cell) for cell in chosen))
    table = Table("producers", *names, *(["page, 1", "page, best"] if with_page else []), title=title)
    for producers in dict.fromkeys(cell["producers"] for cell in chosen):
        by_name = {name_of(cell): cell for cell in chosen if cell["producers"] == producers}
        row = [figures(by_name.get(name)) for name in names]
        if with_page:
            row += [number(each) for each in PAGE.get(producers, (None, None))]
        table.add_row(str(producers), *row)
    Console(width=None if Console().is_terminal else 180).print(table)


def figures(cell: Cell | None) -> str:
    """Appends/s, switches per append, p99."""
    if cell is None:
        return "–"
    p99 = "" if cell["p99_us"] is None else f" | {cell['p99_us']:,.1f} us"
    return f"{cell['per_s']:,.0f} | {cell['switches_per_append']:.2f}{p99}"


def show_follower(cells: list[Cell]) -> None:
    """Entries/s by way and producers."""
    counts = list(dict.fromkeys(cell["producers"] for cell in cells))
    table = Table(
        "way", *(f"{count} clients" for count in counts), title="To a follower, entries/s | switches per entry"
    )
    for way in dict.fromkeys(cell["way"] for cell in cells):
        mine = {cell["producers"]: cell for cell in cells if cell["way"] == way}
        table.add_row(
            way, *(f"{mine[count]['per_s']:,.0f} | {mine[count]['switches_per_append']:.2f}" for count in counts)
        )
    Console(width=None if Console().is_terminal else 180).print(table)


def plot(native: list[Cell], in_python: list[Cell]) -> None:
    """Appends/s over producers, without think time."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for panel, title, cells in ((panels[0], "Rust threads", native), (panels[1], "Python threads", in_python)):
        chosen = [cell for cell in cells if cell["think_ms"] == 0]
        for name in dict.fromkeys(name_of(cell) for cell in chosen):
            points = [(cell["producers"], cell["per_s"]) for cell in chosen if name_of(cell) == name]
            panel.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        panel.set(xscale="log", yscale="log", title=title, xlabel="producers")
        panel.grid(alpha=0.3)
    panels[0].plot(list(PAGE), [best for _, best in PAGE.values()], "k--", linewidth=0.8, label="the page's best")
    panels[0].set_ylabel("appends per second")
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Obey the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.ordered_append", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short cells: no figures to quote")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a cell")
    parser.add_argument("--bootstrap-servers", help="not used: nothing here needs a broker")
    options = parser.parse_args()
    seconds = 0.1 if options.quick else options.seconds
    producers, in_python = ((1, 50), (1, 50)) if options.quick else (PRODUCERS, PYTHON_PRODUCERS)
    think_ms = (0, 1) if options.quick else THINK_MS
    followers = (10,) if options.quick else FOLLOWER_PRODUCERS
    joined = [",".join(map(str, each)) for each in (producers, think_ms, followers)]
    native = rust("append", str(seconds), joined[0], joined[1])
    follower = rust("follower", str(seconds), joined[2])
    own = python(seconds, in_python, think_ms)
    for think in think_ms:
        show(f"Rust, think time {think} ms: appends/s | switches per append | p99", native, think, think == 0)
        show(f"Python, think time {think} ms: appends/s | switches per append | p99", own, think, False)
    show_follower(follower)
    RESULTS.mkdir(exist_ok=True)
    document = {
        "machine": machine(), "versions": versions(), "native": native, "python": own, "follower": follower
    }  # fmt: skip
    (RESULTS / "ordered_append.json").write_text(json.dumps(document, indent=2) + "\n")
    if not options.quick:
        plot(native, own)


if __name__ == "__main__":
    main()
