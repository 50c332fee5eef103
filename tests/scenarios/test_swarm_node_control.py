"""Nodes of a swarm on real Kafka: those that are killed are back, and nothing of them or of the swarm is left."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from pathlib import Path
from typing import Any

from awoke.testing import EmbeddedCluster, Faults
from tests.support.clusters import RealCluster, unique
from tests.support.swarms import PARTITIONS, Flow, Swarm, check, gone, send

KILLS = int(os.environ.get("AWOKE_KILLS", "6"))


def test_nodes_that_are_killed_are_back_and_nothing_is_lost(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    chance = random.Random(4)
    options = ("--restarts-max", "1000", "--restart-backoff-s", "0")
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options) as swarm:
        supervisor = swarm.wait_up(assigned=PARTITIONS)["pid"]
        assert "_native" not in Path(f"/proc/{supervisor}/maps").read_text(), "it has no use for a Kafka client"
        before = len(os.listdir(f"/proc/{supervisor}/fd"))
        for number in range(KILLS):
            node = chance.choice((1, 2))
            killed_ns = time.monotonic_ns()
            dead = swarm.kill(node)
            swarm.wait_until(
                lambda found, killed_ns=killed_ns: found["last_death_ns"] > killed_ns  # type: ignore[misc]
            )
            found = swarm.wait_until(
                lambda found, dead=dead: all(  # type: ignore[misc]
                    each["state"] == "up" and each["pid"] != dead for each in found["nodes"]
                )
            )
            assert sum(each["restarts"] for each in found["nodes"]) == number + 1
        assert len(os.listdir(f"/proc/{supervisor}/fd")) <= before + 1, "descriptors; one may be a question's"
        assert len(os.listdir(f"/proc/{supervisor}/task")) == 1
        check(swarm, flow.stop())
        assert swarm.stop() == 0


def test_a_kill_is_known_before_the_system_is_through_with_the_process(
    real_cluster: RealCluster, topic: str, tmp_path: Path
) -> None:
    options = ("--restarts-max", "1000", "--restart-backoff-s", "0")
    env = {"SWARM_BALLAST_MB": "500"}  # Which take the system a while.
    early = False
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, env=env) as swarm:
        for _ in range(20):  # On a busy machine the test itself asks too late now and then.
            dead = swarm.wait_up()["nodes"][0]["pid"]
            pidfd = os.pidfd_open(dead)
            is_over = select.poll()
            is_over.register(pidfd, select.POLLIN)
            swarm.kill(1)
            while not is_over.poll(0):
                is_known = swarm.status()["nodes"][0]["state"] == "ending"
                if is_known and not is_over.poll(0):
                    early = True
                    break
            os.close(pidfd)
            gone = (dead, None)
            swarm.wait_until(lambda found, gone=gone: found["nodes"][0]["pid"] not in gone)  # type: ignore[misc]
            if early:
                break
        assert swarm.stop() == 0
    assert early, "never: the lifeline's tripwire tells nothing"


def test_when_the_supervisor_is_killed_nothing_is_left(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=3) as swarm:
        found = swarm.wait_up(3, assigned=PARTITIONS)
        swarm.wait_done(100)
        swarm.kill(2, signal.SIGSTOP)  # One that is stopped must notice, too.
        pids = {each["pid"] for each in found["nodes"]}
        swarm.process.signal(signal.SIGKILL)
        swarm.process.wait()
        assert gone(pids, 20.0) == set()
    # The socket that is left is no hindrance.
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        check(swarm, flow.stop())
        assert swarm.stop() == 0


def test_the_thread_with_descriptors_of_its_own_gets_no_signals(
    real_cluster: RealCluster, topic: str, tmp_path: Path
) -> None:
    """It has no wake-up descriptor: a TERM that the kernel gave to it would not be heard."""
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        pid = swarm.wait_up(1)["nodes"][0]["pid"]
        tasks = Path(f"/proc/{pid}/task")
        (lifeline,) = [task for task in tasks.iterdir() if (task / "comm").read_text() == "awoke-lifeline\n"]
        stops = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
        assert stops <= blocked_by(lifeline)
        assert not stops & blocked_by(tasks / str(pid))
        assert swarm.stop() == 0


def blocked_by(task: Path) -> set[int]:
    """Returns the signals that a thread blocks."""
    line = next(line for line in task.joinpath("status").read_text().splitlines() if line.startswith("SigBlk:"))
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def test_a_node_that_crashes_at_boot_ends_the_swarm(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, env={"SWARM_BOOT": "crash"}) as swarm:
        assert swarm.process.wait(60) == 4
        assert "ends again and again" in swarm.process.output


def test_a_term_during_a_back_off_ends_at_once(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    options = ("--restarts-max", "100", "--restart-backoff-s", "30")
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, env={"SWARM_BOOT": "crash"}) as swarm:
        swarm.wait_until(lambda found: all(each["state"] == "waiting" for each in found["nodes"]))
        assert swarm.stop(25) == 0


def test_under_kip_848_a_killed_node_comes_back_with_another_name(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    """A static member that was killed would be refused until its session is over."""
    options = ("--kafka", "group.protocol=consumer")
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, is_classic=False) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        dead = swarm.kill(1)
        swarm.wait_until(lambda found: all(each["pid"] != dead for each in found["nodes"]))
        # What it held is free when the broker gives it up.
        swarm.wait_until(lambda found: sum(each["assigned"] for each in found["nodes"]) == PARTITIONS, 90)
        check(swarm, flow.stop())
        assert swarm.stop() == 0


def test_a_test_kills_a_node_by_its_faults(tmp_path: Path) -> None:
    topic = unique("swarm")
    with EmbeddedCluster() as cluster:
        cluster.create_topic(topic, PARTITIONS)
        with Swarm(cluster.bootstrap_servers, topic, tmp_path) as swarm, Faults(cluster) as faults:
            before = {each["pid"] for each in swarm.wait_up(assigned=PARTITIONS)["nodes"]}
            fault = faults.kill_node(swarm.socket, 2)
            swarm.wait_until(lambda found: all(each["pid"] for each in found["nodes"]) and pids(found) != before)
            assert len(pids(swarm.wait_up()) & before) == 1, "one process is another one"
            assert "kill node 2" in str(fault)
            assert swarm.stop() == 0


def pids(found: dict[str, Any]) -> set[int]:
    """Returns the processes of a swarm's nodes."""
    return {each["pid"] for each in found["nodes"]}


def test_what_a_node_leaves_behind_ends_with_the_swarm(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        send(real_cluster, topic, b"do-spawn")
        swarm.wait_done(1)
        child = int((tmp_path / "child").read_text())
        assert Path(f"/proc/{child}").exists()
        swarm.kill(1)
        swarm.wait_until(lambda found: found["nodes"][0]["restarts"] == 1 and found["nodes"][0]["state"] == "up")
        assert swarm.stop() == 0
        assert gone({child}, 20.0) == set()
