"""The commands quiet, status and threads of a swarm."""

from __future__ import annotations

import json
from pathlib import Path

import awoke
from tests.support.clusters import RealCluster
from tests.support.processes import Process
from tests.support.swarms import PARTITIONS, TARGET, Swarm


def says(command: str, swarm: Swarm, *options: str) -> str:
    """Run a command for the swarm on a terminal of 80 columns; what it wrote."""
    with Process(command, TARGET, "--socket", swarm.socket, *options, env={"COLUMNS": "80"}) as process:
        assert process.wait() == 0, process.output
        return process.output


def port_of(swarm: Swarm) -> int:
    swarm.process.wait_for("health and metrics at")
    line = next(each for each in swarm.process.output.splitlines() if "health and metrics at" in each)
    return int(line.rpartition(":")[2])


def is_quiet(swarm: Swarm) -> list[bool]:
    return [each["is_quiet"] for each in swarm.status()["nodes"]]


def test_a_quiet_swarm_says_so_and_stays_so_until_a_reload(
    real_cluster: RealCluster, topic: str, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--metrics-port", "0") as swarm:
        swarm.wait_up(2, assigned=PARTITIONS)
        port = port_of(swarm)
        assert swarm.get(port, "/ready") == (200, "ready\n")
        assert "quiet" not in says("status", swarm)
        says("quiet", swarm)
        assert swarm.get(port, "/ready") == (503, "not ready: nodes [1, 2] are quiet: they begin no new jobs\n")
        assert swarm.status()["is_quiet"]
        assert is_quiet(swarm) == [True, True]
        shown = says("status", swarm).splitlines()
        assert [line.split()[2] for line in shown[2:4]] == ["quiet", "quiet"]
        assert shown[4] == "quiet: no new jobs begin; a reload ends it"
        killed = swarm.kill(2)
        swarm.wait_until(lambda found: found["nodes"][1]["pid"] not in (None, killed))
        swarm.wait_up(2)
        assert is_quiet(swarm) == [True, True], "the node that followed is quiet, too"
        says("reload", swarm)
        assert swarm.get(port, "/ready") == (200, "ready\n")
        assert is_quiet(swarm) == [False, False]
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            producer.produce(topic, b"x").wait(30)
        swarm.wait_done(1)
        assert swarm.stop() == 0


def test_the_status_fits_a_terminal(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        # Idle and settled: what the command shows is asked for again, and must not have changed meanwhile.
        found = swarm.wait_until(
            lambda found: [(each["assigned"], each["oldest_job_s"]) for each in found["nodes"]] == [(2, 0.0)] * 2
        )
        lines = says("status", swarm).splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[0].startswith(f"{TARGET}: supervisor {found['pid']}, up ")
        assert lines[1].split()[:7] == ["node", "pid", "state", "MiB", "oldest", "job", "assigned"]
        for node, line in zip(found["nodes"], lines[2:4], strict=True):
            cells = line.split()
            assert cells[:3] == [str(node["node"]), str(node["pid"]), "up"]
            assert cells[4:6] == ["-", str(node["assigned"])], "no job runs; partitions that are assigned"
        assert swarm.stop() == 0


def test_the_threads_of_all_nodes_are_shown(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--metrics-port", "0") as swarm:
        swarm.wait_up(2, assigned=PARTITIONS)
        entries = [json.loads(line) for line in says("threads", swarm, "--json").splitlines()]
        workers = {(each["node"], each["owner"]) for each in entries if each["name"] == "awoke-worker-1"}
        assert workers == {(1, "awoke"), (2, "awoke")}
        assert "awoke-worker-1" in says("threads", swarm)
        with Process("threads", str(port_of(swarm)), "--json") as process:
            assert process.wait() == 0, process.output
            assert {json.loads(line)["node"] for line in process.output.splitlines()} == {1, 2}
        assert swarm.stop() == 0
