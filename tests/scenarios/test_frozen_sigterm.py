"""SIGTERM that comes while the process is frozen ends it when it goes on.

The kernel then gives the signal to any thread, and Python runs its handler on the main thread alone: a main thread that
waits for a lock does not wake.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import wait_until

TIMES = 6
"""Now and then the main thread has the signal."""


def is_frozen(pid: int) -> bool:
    """Whether every thread of a process has stopped."""
    states = [file.read_text().rpartition(")")[2].split()[0] for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel what threads do")
@pytest.mark.timeout(300)
def test_sigterm_while_frozen(real_cluster: RealCluster, tmp_path: Path) -> None:
    topic = unique("frozen")
    real_cluster.create_topic(topic)
    env = {"MEMBER_LOG": str(tmp_path / "log"), "MEMBER_NAME": "only", "MEMBER_TOPIC": topic}
    arguments = ("run", "tests.scenarios.member_app:app", "--bootstrap-servers", real_cluster.bootstrap_servers)
    for _ in range(TIMES):
        with Process(*arguments, env={**env, "AWOKE_GROUP": unique("group")}) as process:
            process.wait_for("partitions.assigned")
            process.signal(signal.SIGSTOP)
            wait_until(lambda: is_frozen(process.pid), "the process is frozen")
            process.signal(signal.SIGTERM)
            process.signal(signal.SIGCONT)
            assert process.wait(60) == 0, process.output
