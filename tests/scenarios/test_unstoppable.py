"""A third signal ends a process at once, whatever user code does; the log names that code, with its stack."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.testing import EmbeddedCluster
from awoke.text import exit_codes
from tests.support.processes import Process

TARGET = "tests.scenarios.unstoppable_app:app"
WAYS = {"single": (), "swarm": ("--nodes", "1", "--no-static-members")}
NAMES = {
    "start": ("the start-up function never_return has not ended", "in never_return\n"),
    "start in C": ("the start-up function never_return_from_c has not ended", "in never_return_from_c\n"),
    "async start": ("the start-up function never_return_async has not ended", "in never_return_async\n"),
    "async handler": ("handle, at orders[0] offset 0 has not ended", "in never_return_async\n"),
    "shutdown": ("the shutdown function never_return has not ended", "in never_return\n"),
    "async shutdown": ("the shutdown function never_return_async has not ended", "in never_return_async\n"),
    "subscriber": ("the stop has not ended", "in never_return\n"),
}
"""What the log says of each phase."""
BEFORE_STOP = ("start", "start in C", "async start", "async handler")


@pytest.fixture
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        for topic in ("orders", "out"):
            cluster.create_topic(topic)
        with awoke.Producer(cluster.bootstrap_servers) as producer:
            producer.produce("orders", b"order").wait(30)
        yield cluster


def unstoppable(phase: str, folder: Path, *options: str) -> Process:
    env = {"UNSTOPPABLE": phase, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return Process("run", TARGET, "--socket", str(folder / "app.sock"), *options, env=env)


@pytest.mark.parametrize("phase", NAMES)
def test_a_third_signal_ends_a_process_and_names_the_code(brokers: EmbeddedCluster, tmp_path: Path, phase: str) -> None:
    with unstoppable(phase, tmp_path, "-b", brokers.bootstrap_servers) as process:
        process.wait_for(f"{phase} has begun" if phase in BEFORE_STOP else "got a message")
        process.signal(signal.SIGTERM)
        process.wait_for("stopping")
        if phase not in BEFORE_STOP:
            process.wait_for(f"{phase} has begun")
        process.signal(signal.SIGINT)
        process.wait_for("has not ended" if "start" in phase else "stopping at once")
        process.signal(signal.SIGTERM)
        assert process.wait(30) == exit_codes.EXIT_AT_ONCE, process.output
    said, frame = NAMES[phase]
    assert said in process.output
    assert frame in process.output + "\n"


def test_a_second_signal_ends_an_import_that_does_not_and_names_it(tmp_path: Path) -> None:
    with unstoppable("import", tmp_path) as process:
        process.wait_for("import has begun")
        process.signal(signal.SIGTERM)
        process.wait_for("swallowed")
        process.signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT, process.output
    assert "the import has not ended, it is at:" in process.output
    assert "in never_return\n" in process.output


def test_a_signal_ends_a_process_that_waits_for_brokers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(60)
        process = unstoppable("brokers", tmp_path, "-b", f"127.0.0.1:{mute.getsockname()[1]}")
        with process, mute.accept()[0]:
            process.signal(signal.SIGTERM)
            assert process.wait(30) == exit_codes.EXIT_CLEAN, process.output
    assert "Traceback" not in process.output


@pytest.mark.parametrize("phase", ["import", "start", "start in C", "async start", "shutdown", "subscriber"])
def test_a_third_signal_ends_a_swarm(brokers: EmbeddedCluster, tmp_path: Path, phase: str) -> None:
    options = ("-b", brokers.bootstrap_servers, "--nodes", "1", "--no-static-members")
    with unstoppable(phase, tmp_path, *options) as process:
        process.wait_for(f"{phase} has begun" if phase in (*BEFORE_STOP, "import") else "got a message")
        process.signal(signal.SIGTERM)
        if phase == "import":  # A mold has nothing to stop in order.
            assert process.wait(30) == exit_codes.EXIT_CLEAN, process.output
            return
        process.wait_for("stopping")
        if phase not in BEFORE_STOP:
            process.wait_for(f"{phase} has begun")
        process.signal(signal.SIGTERM)
        process.wait_for("has not ended" if "start" in phase else "stopping at once")
        process.signal(signal.SIGTERM)
        assert process.wait(30) == exit_codes.EXIT_AT_ONCE, process.output
    if "start" in phase:
        assert NAMES[phase][0] in process.output
