"""Every example runs by itself and ends well; so does the demo, which checks its own answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clusters import Cluster

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = sorted({file.stem for file in (REPOSITORY / "examples").glob("*.py")} - {"__init__", "admin"})


def run(*arguments: str) -> str:
    # fastavro turns the GIL on, where there is a Python without.
    warnings = ("-W", "error", "-W", "ignore:The global interpreter lock:RuntimeWarning")
    command = [sys.executable, *warnings, "-m", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str) -> None:
    assert run(f"examples.{name}")


def test_the_example_of_administration_resets_a_group(cluster: Cluster) -> None:
    shown = run("examples.admin", cluster.bootstrap_servers)
    assert "committed: 10 of 10" in shown
    assert "committed now: 0" in shown


def test_the_tests_of_the_example_pass_on_both_brokers(cluster: Cluster) -> None:
    """On Apache Kafka, those that move the clock or have faults happen stay on embedded brokers."""
    brokers = [f"--awoke-brokers={cluster.bootstrap_servers}"] if cluster.is_real else []
    assert "15 passed" in run("pytest", "-q", "-p", "no:cacheprovider", "examples/testing", *brokers)


def test_the_demo_checks_its_answer() -> None:
    assert "routes equal to the plain computation" in run("examples.flights.demo", "--rows", "20000")


def test_the_order_service_has_a_receipt_or_a_dead_letter_for_each_order() -> None:
    shown = run("examples.orders.demo")
    assert "297 receipts" in shown
    assert shown.count("dead: ") == 3
