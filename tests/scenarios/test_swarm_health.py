"""Nodes of a swarm on real Kafka that are frozen, hang or leak are replaced; busy ones are left alone."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.clusters import RealCluster
from tests.support.processes import signal_process
from tests.support.swarms import PARTITIONS, WITHIN_S, Flow, Swarm, check, send
from tests.support.waiting import elapse

SILENT_AFTER_S = 10.0
"""The default of `--silent-after-s`."""


def test_a_frozen_node_is_replaced_within_its_deadline_and_5_s(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        frozen = swarm.kill(1, signal.SIGSTOP)
        swarm.wait_until(lambda found: all(each["state"] == "up" and each["pid"] != frozen for each in found["nodes"]))
        # That these are the times is tested with a clock of its own: tests/unit/swarm/test_health.py.
        assert f"gave no sign of life for {SILENT_AFTER_S:.0f} s" in swarm.process.output
        check(swarm, flow.stop())
        assert swarm.stop() == 0


def test_a_node_that_was_frozen_for_a_moment_is_left_alone(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--silent-after-s", "30") as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        pid = swarm.kill(1, signal.SIGSTOP)
        elapse(10.0, "longer than its session, and far from the silence after which it would be killed")
        os.kill(pid, signal.SIGCONT)
        swarm.wait_until(lambda found: sum(each["assigned"] for each in found["nodes"]) == PARTITIONS)
        check(swarm, flow.stop())
        found = swarm.status()
        assert found["nodes"][0]["pid"] == pid
        assert [each["restarts"] for each in found["nodes"]] == [0, 0]
        assert swarm.stop() == 0


def test_a_frozen_node_that_is_continued_finishes_its_job_and_commits(
    real_cluster: RealCluster, topic: str, tmp_path: Path
) -> None:
    """It lives again, so it has its drain time. Its session is longer than the freeze: nothing is to be repeated."""
    options = ("--kafka", "session.timeout.ms=45000")
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        send(real_cluster, topic, b"do-wait")
        swarm.wait_until(lambda found: found["nodes"][0]["oldest_job_s"] > 0)
        frozen = swarm.kill(1, signal.SIGSTOP)
        swarm.wait_until(lambda found: found["nodes"][0]["state"] == "up" and found["nodes"][0]["pid"] != frozen)
        assert ": killed" not in swarm.process.output
        assert "node 1 ended with 0" in swarm.process.output
        swarm.wait_until(lambda found: found["nodes"][0]["assigned"] == PARTITIONS)
        send(real_cluster, topic, b"x")
        swarm.wait_done(2)
        assert swarm.stop() == 0
        assert swarm.done() == {0: [0, 1]}


@pytest.mark.parametrize("how", [b"do-hang", b"do-hold-gil"])
def test_a_node_that_hangs_is_replaced_and_says_where_it_was(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path, how: bytes
) -> None:
    options = ("--hang-after-s", "3", "--drain-timeout-s", "2")
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        send(real_cluster, topic, how)
        swarm.process.wait_for("has worked on one job")
        swarm.wait_until(lambda found: sum(each["restarts"] for each in found["nodes"]) == 1)
        swarm.wait_up(assigned=PARTITIONS)
        assert "misbehave" in swarm.process.output, "the stacks of the node"
        flow.stop()
        check(swarm, flow.sent + 1)
        assert swarm.stop() == 0


def test_a_busy_node_is_left_alone(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    """The GIL held for longer than a sign of life may take is no reason."""
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--silent-after-s", "10") as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        send(real_cluster, topic, b"do-busy")
        swarm.wait_done(1)
        assert all(each["restarts"] == 0 for each in swarm.status()["nodes"])
        assert swarm.stop() == 0


def test_a_node_that_leaks_is_replaced_in_order(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--memory-limit", "250M") as swarm:
        before = {each["pid"] for each in swarm.wait_up(assigned=PARTITIONS)["nodes"]}
        for _ in range(4):
            send(real_cluster, topic, b"do-leak")
        swarm.process.wait_for("it is replaced in order", WITHIN_S)
        found = swarm.wait_until(
            lambda found: (
                len({each["pid"] for each in found["nodes"]} - before - {None}) == 1
                and all(each["state"] == "up" for each in found["nodes"])
            )
        )
        assert all(each["restarts"] == 0 for each in found["nodes"])
        flow.stop()
        check(swarm, flow.sent + 4)
        assert swarm.stop() == 0


def test_a_leak_of_10_mb_a_second_is_noticed_in_time(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--memory-limit", "150M") as swarm:
        before = {each["pid"] for each in swarm.wait_up(assigned=PARTITIONS)["nodes"]}
        send(real_cluster, topic, b"do-leak-on")
        swarm.process.wait_for("it is replaced in order", WITHIN_S)
        swarm.wait_until(
            lambda found: (
                len({each["pid"] for each in found["nodes"]} - before - {None}) == 1
                and all(each["state"] == "up" for each in found["nodes"])
            )
        )
        (noticed,) = re.findall(r"has (\d+) MB: it is replaced", swarm.process.output)
        assert 150 <= int(noticed) < 250, "a sign of life comes every two seconds"
        flow.stop()
        check(swarm, flow.sent + 1)
        assert swarm.stop() == 0


def test_a_node_beyond_the_hard_limit_is_killed(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--memory-hard-limit", "200M") as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        for _ in range(3):
            send(real_cluster, topic, b"do-leak")
        swarm.process.wait_for("more than it may", WITHIN_S)
        swarm.wait_until(lambda found: sum(each["restarts"] for each in found["nodes"]) == 1)
        swarm.wait_up(assigned=PARTITIONS)
        assert swarm.stop() == 0, swarm.process.output


def test_a_supervisor_that_overslept_kills_no_node(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--silent-after-s", "6") as swarm:
        before = swarm.wait_up(assigned=PARTITIONS)
        pids = [each["pid"] for each in before["nodes"]]
        processes = [*pids, before["pid"]]
        for pid in processes:
            signal_process(pid, signal.SIGSTOP)  # As when the machine sleeps.
        elapse(12, "longer than the silence after which a node is killed")
        for pid in reversed(processes):
            os.kill(pid, signal.SIGCONT)
        swarm.process.wait_for("deadlines are moved")
        elapse(7, "a node that seems silent would be killed in this time")
        found = swarm.wait_up(assigned=PARTITIONS)
        assert [each["pid"] for each in found["nodes"]] == pids
        check(swarm, flow.stop())
        assert swarm.stop() == 0
