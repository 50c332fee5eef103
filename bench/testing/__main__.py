"""Compares the tools for tests of awoke, FastStream and Temporal: each answer is a test that runs now.

A tool that can't has no such test. The tests lie beside this file. FastStream and Temporal run in environments of
their own under `.venvs/testing`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from bench.environments import python_with
from bench.harness import REPOSITORY, brokers, create_topic
from bench.testing.questions import QUESTIONS

PYTEST = ("pytest==9.2.0", "pytest-asyncio==1.5.0")
FOLDER = Path(__file__).parent


class Tool(NamedTuple):
    """A test tool: the file of its tests, what is installed for it, and what it cannot show here."""

    file: str
    requirements: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    """Questions that it answers with more than a package: by its documentation, not tried here."""


TOOLS = {
    "awoke": Tool("awoke_tests.py"),
    "FastStream 0.7.8": Tool("faststream_tests.py", ("faststream[confluent]==0.7.8", *PYTEST)),
    "Temporal 1.35.0": Tool(
        "temporal_tests.py",
        ("temporalio==1.35.0", *PYTEST),
        (
            "a_failing_message_is_tried_again",
            "hours_pass_at_once",
            "a_request_is_answered",
            "recorded_input_meets_new_code",
            "it_runs_on_real_brokers",
        ),
    ),
}


class Result(NamedTuple):
    """The end of the test of a question, and the time that it took."""

    outcome: str
    seconds: float


def run(tool: Tool, bootstrap_servers: str) -> dict[str, Result]:
    """Runs the tests of a tool; returns the result of each question that has a test."""
    python = python_with(f"testing/{tool.file.removesuffix('.py')}", *tool.requirements)
    environment = {**os.environ, "BENCH_BROKERS": bootstrap_servers, "BENCH_TOPIC": create_topic(bootstrap_servers, 1)}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-q",
            "-c",
            os.devnull,
            "--rootdir",
            str(FOLDER),
            "-o",
            "asyncio_mode=auto",
            "-p",
            "no:cacheprovider",
        ]
        command = [str(python), "-m", "pytest", *options, f"--junitxml={report}", str(FOLDER / tool.file)]
        subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=sys.stderr, check=False)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return {str(case.get("name")).removeprefix("test_"): result_of(case) for case in cases}


def result_of(case: ElementTree.Element) -> Result:
    """Returns the result of one test."""
    ended = [child for child in case if child.tag in ("failure", "error", "skipped")]
    failed = [child.tag for child in ended if child.get("type") != "pytest.xfail"]
    return Result(failed[0] if failed else "yes", float(case.get("time", "0")))


def answer(tool: Tool, question: str, results: dict[str, Result]) -> str:
    """Returns what the table says."""
    if question in results:
        result = results[question]
        return f"{result.outcome}, {result.seconds * 1_000:.0f} ms" if result.outcome == "yes" else result.outcome
    return "by its docs" if question in tool.elsewhere else "-"


def print_price(bootstrap_servers: str) -> None:
    """Prints the median time of a test by the plugin, its set-up and tear-down included."""
    times_s = [result.seconds for result in run(Tool("awoke_price.py"), bootstrap_servers).values()]
    times = f"{statistics.median(times_s) * 1_000:.0f} ms (longest {max(times_s) * 1_000:.0f} ms)"
    print(f"One test of awoke with brokers, an app, a probe and a message: median {times}")


def main() -> int:
    """Runs the command line. Returns the exit code, which is not 0 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.testing", description=__doc__)
    parser.add_argument("--bootstrap-servers", help="brokers to use instead of starting one")
    parser.add_argument("--price", action="store_true", help="measure the time of one test of awoke only")
    options = parser.parse_args()
    with brokers(options.bootstrap_servers) as bootstrap_servers:
        print_price(bootstrap_servers)
        if options.price:
            return 0
        found = {name: run(tool, bootstrap_servers) for name, tool in TOOLS.items()}
    table = Table(title="What can be tested")
    for column in ("", *TOOLS):
        table.add_column(column)
    for name, question in QUESTIONS.items():
        table.add_row(question, *(answer(tool, name, found[label]) for label, tool in TOOLS.items()))
    Console(width=None if Console().is_terminal else 140).print(table)
    wrong = {f"{label}: {name}" for label, results in found.items() for name in results if name not in QUESTIONS}
    failed = [
        f"{label}: {name}" for label, results in found.items() for name in results if results[name].outcome != "yes"
    ]
    for each in [*sorted(wrong), *failed]:
        print(f"failed, or no question: {each}", file=sys.stderr)
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
