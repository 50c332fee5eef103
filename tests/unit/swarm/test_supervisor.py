"""The loop of a swarm, with a mold that can't import the app: from its start to its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from awoke.swarm.options import SwarmOptions
from awoke.swarm.supervisor import Supervisor
from awoke.text import exit_codes

RUN = """
import os
import signal
import sys

from awoke.swarm.nodes import NodeTimer
from awoke.swarm.options import SwarmOptions
from awoke.swarm.supervisor import Supervisor
from awoke.observe.web.deadlines import Deadline

supervisor = Supervisor(SwarmOptions(target=sys.argv[2], nodes=1, socket=sys.argv[1]))
if sys.argv[3] == "stop":
    supervisor.loop.deadlines.set(Deadline(NodeTimer.STOP), 0.0, lambda: os.kill(os.getpid(), signal.SIGTERM))
sys.exit(supervisor.run())
"""
"""A supervisor needs the main thread of a process of its own: it takes in the orphans of its descendants."""


def run(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(folder / "s"), "no_such_module:app", how]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_an_app_that_can_not_be_imported_ends_the_swarm_with_its_exit_code(tmp_path: Path) -> None:
    done = run(tmp_path, "wait")
    assert done.returncode == exit_codes.EXIT_CONFIGURATION, done.stderr
    assert not (tmp_path / "s").exists()


def test_a_signal_ends_the_loop_although_no_node_was_started(tmp_path: Path) -> None:
    done = run(tmp_path, "stop")
    assert done.returncode == exit_codes.EXIT_CLEAN, done.stderr
    assert not (tmp_path / "s").exists()


def test_a_supervisor_that_never_ran_can_be_closed(tmp_path: Path) -> None:
    Supervisor(SwarmOptions(target="a:b", nodes=1, socket=str(tmp_path / "s"))).close()
