"""The mold stops, dies, or can't be made again: running nodes go on, and TERM always ends the swarm."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.scenarios.test_swarm_reload import send, swarm_of
from tests.support.clusters import RealCluster
from tests.support.processes import Process
from tests.support.swarms import PARTITIONS, TARGET, WITHIN_S
from tests.support.waiting import elapse

DRAIN_S = 35.0
"""The default of `--drain-timeout-s`."""


def test_a_mold_that_is_stopped_is_replaced_when_a_node_needs_it(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm:
        found = swarm.wait_up(assigned=PARTITIONS)
        swarm.kill_mold(found["mold_pid"], signal.SIGSTOP)
        other = found["nodes"][1]["pid"]
        dead = swarm.kill(1)
        swarm.wait_until(lambda found: found["nodes"][0]["state"] == "forking")
        swarm.process.wait_for("did not fork node 1", WITHIN_S)
        found = swarm.wait_until(lambda found: found["nodes"][0]["state"] == "up" and found["nodes"][0]["pid"] != dead)
        assert found["nodes"][1]["pid"] == other
        assert (found["mold"], found["mold_state"]) == (2, "ready")
        send(real_cluster, topic, 40)
        swarm.wait_done(40)
        assert swarm.stop() == 0


def test_a_mold_that_is_killed_again_and_again_does_not_end_the_swarm(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm:
        pids = [each["pid"] for each in swarm.wait_up(assigned=PARTITIONS)["nodes"]]
        code.write_text("slow")
        for generation in range(1, 5):  # The first when it is ready, the others while they import.
            found = swarm.wait_until(
                lambda found, generation=generation: (  # type: ignore[misc]
                    found["mold_state"] == ("ready" if generation == 1 else "importing") and found["mold_pid"]
                )
            )
            swarm.kill_mold(found["mold_pid"])
            swarm.wait_until(lambda found: found["mold_state"] == "waiting")
        found = swarm.status()
        assert "ended with -9 while it imported the app" in found["mold_error"]
        assert [each["pid"] for each in found["nodes"]] == pids
        code.write_text("")
        swarm.wait_until(lambda found: found["mold_state"] == "ready")
        assert swarm.status()["mold_error"] == ""
        swarm.kill(1)
        swarm.wait_until(lambda found: found["nodes"][0]["restarts"] == 1 and found["nodes"][0]["state"] == "up")
        assert swarm.stop() == 0


def test_a_mold_that_can_not_be_made_again_is_tried_again_while_nodes_run(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm:
        found = swarm.wait_up(assigned=PARTITIONS)
        code.write_text("raise")
        swarm.kill_mold(found["mold_pid"])
        dead = swarm.kill(1)
        swarm.wait_until(lambda found: found["mold_state"] == "waiting" and "broken" in found["mold_error"])
        swarm.process.wait_for("Another one is made in 4 s", WITHIN_S)
        found = swarm.wait_until(lambda found: found["mold_state"] == "waiting")
        assert found["nodes"][0]["state"] == "queued"
        assert found["nodes"][1]["state"] == "up"
        with Process("status", TARGET, "--socket", swarm.socket) as shown:
            assert shown.wait() == 0
            assert "no mold" in shown.output  # Waiting for its next try, or trying.
            assert "RuntimeError: the code on disk is broken" in shown.output
        send(real_cluster, topic, 40)
        swarm.wait_done(40)
        code.write_text("")
        swarm.ask("reload", within_s=60)  # At once, whatever the back-off.
        found = swarm.wait_up(assigned=PARTITIONS)
        assert found["nodes"][0]["pid"] != dead
        assert swarm.stop() == 0


def test_without_a_node_a_mold_that_can_not_be_made_ends_the_swarm_and_says_so(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code, nodes=1) as swarm:
        found = swarm.wait_up(1, assigned=PARTITIONS)
        code.write_text("raise")
        swarm.kill_mold(found["mold_pid"])
        swarm.process.wait_for("Another one is made in 2 s", WITHIN_S)
        swarm.kill(1)
        assert swarm.process.wait(WITHIN_S) == 78
        assert "no node runs: the swarm ends. RuntimeError: the code on disk is broken" in swarm.process.output


@pytest.mark.parametrize("case", ["mold", "forking", "nodes", "both", "killed", "importing", "waiting"])
def test_a_term_ends_the_swarm_whatever_state_mold_and_nodes_are_in(
    real_cluster: RealCluster, topic: str, code: Path, case: str
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm:
        mold = swarm.wait_up(assigned=PARTITIONS)["mold_pid"]
        if case in ("mold", "forking", "both"):
            swarm.kill_mold(mold, signal.SIGSTOP)
        if case == "forking":
            swarm.kill(1)
            swarm.wait_until(lambda found: found["nodes"][0]["state"] == "forking")
        if case in ("nodes", "both"):
            swarm.kill(1, signal.SIGSTOP)
            swarm.kill(2, signal.SIGSTOP)
            elapse(1.0, "the supervisor goes on without their signs of life")
        if case in ("killed", "importing", "waiting"):
            code.write_text("slow" if case == "importing" else "raise")
            swarm.kill_mold(mold)
        if case in ("importing", "waiting"):
            swarm.kill(1)
            swarm.wait_until(lambda found: found["mold_state"] == case and found["nodes"][0]["state"] == "queued")
        assert swarm.stop(DRAIN_S) == 0, swarm.process.output


def test_a_term_ends_a_swarm_whose_first_mold_is_stopped(real_cluster: RealCluster, topic: str, code: Path) -> None:
    code.write_text("slow")
    with swarm_of(real_cluster, topic, code) as swarm:
        found = swarm.wait_until(lambda found: found["mold_state"] == "importing")
        swarm.kill_mold(found["mold_pid"], signal.SIGSTOP)
        assert swarm.stop(DRAIN_S) == 0
