"""Measures what it costs to import awoke and to begin a command: time, processor time and memory of a fresh process."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Mapping

from bench.harness import REPOSITORY
from bench.report import Report, Result

BARE = "python"
AN_APP = """
import awoke
app = awoke.App("shop", group="shop")
@app.on("orders")
def handle(message): ...
"""
ALL_NAMES = "import awoke\nfor name in awoke.__all__: getattr(awoke, name)"


def command(*words: str) -> str:
    """Returns a program that does what the script `awoke` does with these words."""
    return f"import sys; sys.argv = {['awoke', *words]!r}; from awoke.cli import main; main()"


CONTESTANTS: Mapping[str, str] = {
    BARE: "",
    "import awoke": "import awoke",
    "import awoke, define an app": AN_APP,
    "import awoke, load every public name": ALL_NAMES,
    "import confluent_kafka": "import confluent_kafka",
    "import aiokafka": "import aiokafka",
    "awoke --help": command("--help"),
    "awoke --version": command("--version"),
    "awoke run --help": command("run", "--help"),
    "awoke topics list --help": command("topics", "list", "--help"),
    "awoke produce --help": command("produce", "--help"),
}

# The resident memory is read at the end, by the process itself: that of its parent would count what it was forked from.
PRELUDE = """
import atexit
@atexit.register
def _tell():
    import os
    with open("/proc/self/status", "rb") as file:
        line = next(each for each in file if each.startswith(b"VmRSS"))
    os.write(2, b"\\n" + line)
"""


class Failed(RuntimeError):
    """A program ended with an error; the text has the end of its output."""


def children_cpu_s() -> float:
    """Returns the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(program: str) -> dict[str, float]:
    """Returns wall-clock and processor time in milliseconds and resident memory in MB of a program in a fresh process.

    Raises:
        Failed: The program ended with an error.
    """
    before_s, begin_s = children_cpu_s(), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PRELUDE + program], cwd=REPOSITORY, capture_output=True, check=False)
    wall_s, cpu_s = time.perf_counter() - begin_s, children_cpu_s() - before_s
    if done.returncode != 0:
        raise Failed(done.stderr.decode(errors="replace").strip()[-500:])
    resident_kb = int(done.stderr.splitlines()[-1].split()[1])
    return {"ms": wall_s * 1e3, "cpu_ms": cpu_s * 1e3, "mb": resident_kb / 1024}


def with_difference(result: Result, bare: Result) -> dict[str, float]:
    """Returns a result, and how much more it is than that of bare Python in the same run."""
    return {**result, "ms_more": result["ms"] - bare["ms"], "mb_more": result["mb"] - bare["mb"]}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.start_up", description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--bootstrap-servers", help="not used: nothing here needs a broker")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    report = Report("start_up", "Imports and commands in fresh processes", "ms", is_higher_better=False)
    report.results = {name: [] for name in CONTESTANTS}
    for run in range(options.runs + 1):
        print(f"run {run} of {options.runs}" if run else "warm-up", file=sys.stderr, flush=True)
        bare: Result = {}
        for name, program in CONTESTANTS.items():
            try:
                result = measure(program)
            except Failed as error:
                report.failures[name] = str(error)
                continue
            bare = result if name == BARE else bare
            if run:  # The first one compiles modules, and reads files from the disk.
                report.results[name].append(with_difference(result, bare))
    report.write({"runs": options.runs})
    if BARE in report.failures or any("awoke" in name for name in report.failures):
        sys.exit(1)


if __name__ == "__main__":
    main()
