"""A second signal ends a stop that waits for a job: processed messages are committed; the exit code tells the rest."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.testing import EmbeddedCluster
from awoke.text import exit_codes
from tests.support.processes import Process

TARGET = "tests.scenarios.hanging_app:app"
WAYS = {"single": (), "swarm": ("--nodes", "1", "--no-static-members")}


@pytest.fixture
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", partitions=4)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            values = [b"order"] * 9 + [b"hang"]
            awoke.wait_all([producer.produce("orders", value, partition=0) for value in values], 30)
        yield cluster


@pytest.mark.parametrize("kind", ["def", "async"])
@pytest.mark.parametrize("way", WAYS)
def test_a_second_signal_waits_for_no_job(brokers: EmbeddedCluster, tmp_path: Path, way: str, kind: str) -> None:
    options = (*WAYS[way], "-b", brokers.bootstrap_servers, "--log-level", "debug")
    env = {"HANGING_KIND": kind, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with Process("run", TARGET, "--socket", str(tmp_path / "app.sock"), *options, env=env) as process:
        process.wait_for("got 0 9")
        process.signal(signal.SIGTERM)
        process.wait_for("app.stopping")
        process.signal(signal.SIGINT)
        assert process.wait(15) == exit_codes.EXIT_LATE, process.output
    assert "running jobs are not waited for" in process.output
    assert "('orders', 0, 9)" in process.output, "the offset behind the messages that are done is committed"
    assert "is still running" in process.output
    assert "is_clean=False" in process.output
    overdue = [line for line in process.output.splitlines() if "job.overdue" in line]
    assert all("[('orders', 0)]" in line for line in overdue), "an idle partition is called overdue"


def test_a_second_signal_changes_nothing_where_no_job_runs(brokers: EmbeddedCluster, tmp_path: Path) -> None:
    options = ("-b", brokers.bootstrap_servers, "--socket", str(tmp_path / "app.sock"))
    env = {"HANGING_KIND": "def"}
    with Process("run", "examples.hello:app", *options, "--embedded", env=env) as process:
        process.wait_for("partitions.assigned")
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGINT)
        assert process.wait(15) == exit_codes.EXIT_CLEAN, process.output
