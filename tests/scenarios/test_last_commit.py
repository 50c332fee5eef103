"""A stop says so when its last commit failed: where, how many messages come again, and with its exit code."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.testing import EmbeddedCluster
from awoke.text import exit_codes
from tests.support.processes import Process

SWARM = ("--nodes", "1", "--no-static-members")
WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "single": ((), {}),
    "swarm": (SWARM, {}),
    "with an output": ((), {"HANGING_OUTPUT": "done"}),
}


@pytest.fixture
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        cluster.create_topic("done")
        produce(cluster)
        yield cluster


def produce(brokers: EmbeddedCluster) -> None:
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        awoke.wait_all([producer.produce("orders", b"order") for _ in range(10)], 30)


@pytest.fixture
def process(brokers: EmbeddedCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Process]:
    """An app that commits seldom, after its first messages."""
    way, more = WAYS[request.param]
    options = ("-b", brokers.bootstrap_servers, "--log-level", "debug", "--socket", str(tmp_path / "app.sock"), *way)
    env = {"HANGING_KIND": "def", "AWOKE_COMMIT_INTERVAL_S": "60", "AWOKE_SHUTDOWN_TIMEOUT_S": "5", **more}
    with Process("run", "tests.scenarios.hanging_app:app", *options, env=env) as found:
        found.wait_for("offsets.committed")  # The first commit comes at once, the next one after a minute.
        produce(brokers)
        found.wait_for("got 0 19")
        yield found


@pytest.mark.parametrize("process", WAYS, indirect=True)
def test_a_stop_without_brokers_is_not_clean(brokers: EmbeddedCluster, process: Process) -> None:
    brokers.set_broker_up(1, False)
    process.signal(signal.SIGTERM)
    assert process.wait(60) == exit_codes.EXIT_LATE, process.output
    (line,) = (each for each in process.output.splitlines() if "offsets.not_committed" in each)
    found = re.search(r"places='orders\[0\] from offset (\d+) to 19' messages=(\d+)", line)
    assert found is not None, line
    assert int(found[1]) + int(found[2]) == 20
    assert "is_clean=False" in process.output
    assert "job.overdue" not in process.output, "its hook was not begun before the deadline, and no job ran"


@pytest.mark.parametrize("process", WAYS, indirect=True)
def test_a_stop_whose_commit_succeeds_is_clean(process: Process) -> None:
    process.signal(signal.SIGTERM)
    assert process.wait(60) == exit_codes.EXIT_CLEAN, process.output
    assert "offsets.not_committed" not in process.output
