"""The system clock is set back while an app runs: it stays in its group, goes on committing, and SIGTERM ends it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.support import judge
from tests.support.clock_step import SteppedClock, build
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import elapse, wait_until

SESSION_S = 3.0
"""Of `member_app`."""
WITHIN_S = 60.0


def start(servers: str, topic: str, group: str, log: Path, clock: SteppedClock) -> Process:
    env = {"MEMBER_LOG": str(log), "MEMBER_NAME": "only", "MEMBER_TOPIC": topic, "AWOKE_GROUP": group, **clock.env}
    return Process("run", "tests.scenarios.member_app:app", "--bootstrap-servers", servers, env=env)


def hooks(log: Path) -> list[str]:
    """The hooks that ran, batches left out."""
    found = [line.split()[1] for line in whole_lines(log)]
    return [each for each in found if each != "batch"]


def members_of(servers: str, group: str) -> list[str]:
    """The members' ids by the broker's word."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    described = admin.describe_consumer_groups([group])[group].result(30)
    return [member.member_id for member in described.members]


@pytest.mark.skipif(sys.platform != "linux", reason="a library is preloaded as Linux does it")
@pytest.mark.parametrize("back_s", [pytest.param(30, marks=pytest.mark.soak), 3_600])
def test_a_clock_that_is_set_back_changes_nothing(real_cluster: RealCluster, tmp_path: Path, back_s: int) -> None:
    servers, topic, group, log = real_cluster.bootstrap_servers, unique("clock"), unique("group"), tmp_path / "log"
    real_cluster.create_topic(topic)
    with (
        SteppedClock(build(tmp_path), tmp_path / "offset") as clock,
        start(servers, topic, group, log, clock) as process,
    ):
        judge.feed(servers, topic, [b"before"] * 100)
        assert judge.comes_to_end(servers, group, topic, WITHIN_S), process.output
        wait_until(lambda: len(members_of(servers, group)) == 1, "the app is a member", WITHIN_S)
        members = members_of(servers, group)
        clock.set(-back_s)
        elapse(2 * SESSION_S, "only its own deadlines wake it, and a member that sends no heartbeat is removed")
        assert members_of(servers, group) == members, "the app was removed from its group"
        for number in range(3):
            judge.feed(servers, topic, [b"after-%d" % number] * 100)
            assert judge.comes_to_end(servers, group, topic, WITHIN_S), judge.progress(servers, group, topic)
        assert members_of(servers, group) == members, "the app has left its group"
        assert hooks(log) == ["assigned"]
        process.signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0, process.output
    assert hooks(log) == ["assigned", "shutdown"]
