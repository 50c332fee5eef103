"""The report of every benchmark: the machine, the versions, a table on standard output and a JSON file."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).resolve().parent / "results"
LIBRARIES = ("awoke", "confluent-kafka", "aiokafka", "faststream")

Result = Mapping[str, float]


def machine() -> dict[str, Any]:
    """Returns processor, number of cores, memory, system and load, which the figures depend on."""
    return {
        "processor": _first_value("/proc/cpuinfo", "model name") or platform.processor(),
        "processors": os.cpu_count(),
        "memory": _first_value("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "load_1_min": os.getloadavg()[0],
    }


def _first_value(file: str, name: str) -> str:
    """Returns the value of the first `name: value` line; empty if there is none."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the installed contestants, by the name of the distribution."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    try:
        import confluent_kafka

        import awoke

        found["librdkafka of awoke"] = awoke.librdkafka_version()
        found["librdkafka of confluent-kafka"] = str(confluent_kafka.libversion()[0])
    except ImportError:
        pass
    return found


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the smallest value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(len(ordered) * percent / 100) - 1))]


def latency(name: str, values_ns: Sequence[int]) -> dict[str, float]:
    """Returns median and 99th percentile in microseconds of latencies in nanoseconds."""
    return {
        f"{name}_median_us": statistics.median(values_ns) / 1e3,
        f"{name}_p99_us": percentile(values_ns, 99) / 1e3,
    }


@dataclass(frozen=True)
class Reference:
    """The divisor of the other results: one contestant, or the best of several."""

    label: str
    contestants: tuple[str, ...]


@dataclass
class Report:
    """The results of one program: contestants by name, one result for each run."""

    name: str
    title: str
    main: str
    is_higher_better: bool
    references: tuple[Reference, ...] = ()
    results: dict[str, list[Result]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def medians(self, contestant: str) -> dict[str, float]:
        """Returns the median over the runs of each measure of a contestant; empty if it has none."""
        runs = self.results.get(contestant, [])
        names = dict.fromkeys(name for run in runs for name in run)
        return {name: statistics.median(run[name] for run in runs if name in run) for name in names}

    def reference_value(self, reference: Reference) -> float | None:
        """Returns the main measure of a reference; None if none of its contestants has run."""
        medians = (self.medians(name) for name in reference.contestants)
        values = [each[self.main] for each in medians if self.main in each]
        if not values:
            return None
        return max(values) if self.is_higher_better else min(values)

    def ratios(self, contestant: str) -> dict[str, float]:
        """Returns the main measure divided by that of each reference, by the reference's label."""
        own = self.medians(contestant).get(self.main)
        values = {reference.label: self.reference_value(reference) for reference in self.references}
        return {label: own / value for label, value in values.items() if own is not None and value}

    def table(self) -> Table:
        """Returns a table of medians and ratios, a line for each contestant."""
        better = "more is better" if self.is_higher_better else "less is better"
        table = Table(title=f"{self.title} ({self.main.replace('_', ' ')}: {better})")
        table.add_column("contestant")
        names = list(dict.fromkeys(name for each in self.results for name in self.medians(each)))
        for name in (*names, *(f"÷ {reference.label}" for reference in self.references)):
            table.add_column(name.replace("_", " "), justify="right")
        for contestant in self.results:
            medians, ratios = self.medians(contestant), self.ratios(contestant)
            figures = [number(medians.get(name)) for name in names]
            figures += [number(ratios.get(reference.label)) for reference in self.references]
            note = "" if contestant not in self.failures else " (failed)"
            table.add_row(contestant + note, *figures)
        return table

    def write(self, options: Mapping[str, Any]) -> Path:
        """Prints the table and writes the JSON file. Returns the file's path."""
        console = Console(width=None if Console().is_terminal else 160)
        console.print(self.table())
        for contestant, why in self.failures.items():
            console.print(f"{contestant} failed: {why}", markup=False, highlight=False)
        contestants = {
            each: {"runs": self.results[each], "medians": self.medians(each), "ratios": self.ratios(each)}
            for each in self.results
        }
        content = {
            "benchmark": self.name,
            "title": self.title,
            "main": self.main,
            "is_higher_better": self.is_higher_better,
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "options": dict(options),
            "machine": machine(),
            "versions": versions(),
            "contestants": contestants,
            "failures": self.failures,
        }
        RESULTS.mkdir(exist_ok=True)
        file = RESULTS / f"{self.name}.json"
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        console.print(f"written: bench/results/{file.name}", markup=False, highlight=False)
        return file


def number(value: float | None) -> str:
    """Formats a figure for people: three significant digits, or a whole number if it is large."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
