"""A reload replaces all nodes or none is lost: new code that does not start leaves the old code at work."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import RealCluster
from tests.support.processes import Process
from tests.support.swarms import PARTITIONS, TARGET, Swarm, is_in_order

RELOADED_S = 150.0

BAD = [
    pytest.param("raise", "could not be imported: .*the code on disk is broken", id="raise"),
    pytest.param("topic", "there-is-no-such-topic.* does not exist", id="topic", marks=pytest.mark.soak),
    pytest.param("fail", "RuntimeError: the new code does not start", id="fail", marks=pytest.mark.soak),
    pytest.param("exit", "ended with 5", id="exit"),
]


def swarm_of(cluster: RealCluster, topic: str, code: Path, *options: str, nodes: int = 2) -> Swarm:
    env = {"SWARM_CODE": str(code)}
    return Swarm(cluster.bootstrap_servers, topic, code.parent, *options, nodes=nodes, env=env)


def send(cluster: RealCluster, topic: str, count: int) -> None:
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        for number in range(count):
            producer.produce(topic, b"x", partition=number % PARTITIONS)
        assert producer.flush(30)


@pytest.mark.parametrize(("behaviour", "reason"), BAD)
def test_new_code_that_does_not_start_leaves_the_old_code_at_work(
    real_cluster: RealCluster, topic: str, code: Path, behaviour: str, reason: str
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm:
        before = {each["node"]: each["pid"] for each in swarm.wait_up(assigned=PARTITIONS)["nodes"]}
        send(real_cluster, topic, 40)
        code.write_text(behaviour)
        with pytest.raises(awoke.AwokeError, match=reason) as caught:
            swarm.ask("reload", within_s=RELOADED_S)
        assert not isinstance(caught.value, awoke.ConfigError)

        found = swarm.wait_up(assigned=PARTITIONS)
        assert found["nodes"][1]["pid"] == before[2], "its turn never came"
        assert [each["mold"] for each in found["nodes"]] == [1, 1]
        assert [each["restarts"] for each in found["nodes"]] == [0, 0]
        assert (found["mold"], found["is_rolling"]) == (1, False)
        assert found["reload"]["last_error"] in str(caught.value)
        swarm.process.wait_for("the reload is stopped", 5)
        send(real_cluster, topic, 40)
        swarm.wait_done(80)

        # The next one, of code that is well, succeeds.
        code.write_text("")
        swarm.ask("reload", within_s=RELOADED_S)
        found = swarm.wait_up(assigned=PARTITIONS)
        assert [each["mold"] for each in found["nodes"]] == [3, 3]
        assert found["reload"] == {"state": "idle", "node": None, "last_error": ""}
        send(real_cluster, topic, 40)
        swarm.wait_done(120)
        assert all(is_in_order(offsets) for offsets in swarm.done().values())
        assert swarm.stop() == 0


def test_the_command_waits_and_tells_how_the_reload_ended(real_cluster: RealCluster, topic: str, code: Path) -> None:
    with swarm_of(real_cluster, topic, code) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        with Process("reload", TARGET, "--socket", swarm.socket) as reload:
            assert reload.wait(RELOADED_S) == 0, reload.output
        assert [each["mold"] for each in swarm.status()["nodes"]] == [2, 2]
        code.write_text("topic")
        with Process("reload", TARGET, "--socket", swarm.socket) as reload:
            assert reload.wait(RELOADED_S) == 1
            assert "does not exist" in reload.output
        with Process("status", TARGET, "--socket", swarm.socket) as shown:
            assert shown.wait() == 0
            assert "the last reload failed" in shown.output
        assert swarm.stop() == 0


def test_a_node_of_the_new_code_that_is_killed_stops_the_reload(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code, nodes=3) as swarm, ThreadPoolExecutor(1) as asking:
        swarm.wait_up(3, assigned=PARTITIONS)
        code.write_text("dawdle")
        answer = asking.submit(swarm.ask, "reload", within_s=RELOADED_S)
        # The first has proved the new code; the second is killed.
        swarm.wait_until(lambda found: found["nodes"][1]["mold"] == 2 and found["nodes"][1]["state"] == "booting")
        with pytest.raises(awoke.ConfigError, match="under way"):
            swarm.ask("reload")
        swarm.kill(2)
        with pytest.raises(awoke.AwokeError, match="node 2, with the new code, ended by SIGKILL"):
            answer.result()
        found = swarm.wait_up(3, assigned=PARTITIONS)
        assert [each["mold"] for each in found["nodes"]] == [2, 1, 1]
        assert "nodes [1] keep the new code" in swarm.process.output
        assert swarm.stop() == 0


def test_a_reload_mends_nodes_that_wait_for_their_restart(real_cluster: RealCluster, topic: str, code: Path) -> None:
    code.write_text("fail")
    options = ("--restarts-max", "100", "--restart-backoff-s", "300")
    with swarm_of(real_cluster, topic, code, *options) as swarm:
        swarm.wait_until(lambda found: [each["state"] for each in found["nodes"]] == ["waiting", "waiting"])
        code.write_text("")
        swarm.ask("reload", within_s=RELOADED_S)
        found = swarm.wait_up(assigned=PARTITIONS)
        assert [each["mold"] for each in found["nodes"]] == [2, 2]
        assert swarm.stop() == 0


def test_a_swarm_that_is_scaled_during_a_reload_ends_with_the_new_code_alone(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm, ThreadPoolExecutor(1) as asking:
        swarm.wait_up(assigned=PARTITIONS)
        answer = asking.submit(swarm.ask, "reload", within_s=RELOADED_S)
        swarm.wait_until(lambda found: found["reload"]["state"] == "rolling")
        swarm.ask("scale", nodes=3)
        swarm.wait_until(lambda found: len(found["nodes"]) == 3)
        swarm.ask("scale", nodes=1)
        swarm.ask("scale", nodes=3)
        answer.result()
        found = swarm.wait_up(3)
        assert [each["mold"] for each in found["nodes"]] == [2, 2, 2]
        assert swarm.stop() == 0


def test_a_mold_that_dies_during_a_reload_does_not_end_the_swarm(
    real_cluster: RealCluster, topic: str, code: Path
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm, ThreadPoolExecutor(1) as asking:
        old = swarm.wait_up(assigned=PARTITIONS)["mold_pid"]
        answer = asking.submit(swarm.ask, "reload", within_s=RELOADED_S)
        swarm.wait_until(lambda found: found["reload"]["state"] == "rolling")
        swarm.kill_mold(old)
        answer.result()
        found = swarm.wait_up(assigned=PARTITIONS)
        assert [each["mold"] for each in found["nodes"]] == [2, 2]
        assert found["mold"] == 2
        assert swarm.stop() == 0


@pytest.mark.parametrize("state", ["importing", "rolling"])
def test_a_stop_during_a_reload_ends_the_swarm_and_answers(
    real_cluster: RealCluster, topic: str, code: Path, state: str
) -> None:
    with swarm_of(real_cluster, topic, code) as swarm, ThreadPoolExecutor(1) as asking:
        swarm.wait_up(assigned=PARTITIONS)
        code.write_text("slow")
        answer = asking.submit(swarm.ask, "reload", within_s=RELOADED_S)
        swarm.wait_until(lambda found: found["reload"]["state"] == state)
        swarm.process.signal(signal.SIGTERM)
        with pytest.raises(awoke.AwokeError, match="the swarm stops"):
            answer.result()
        # A node that is told to stop before it hears signals ends as any process does.
        assert swarm.process.wait(60) in ((0,) if state == "importing" else (0, 1, 3))


def test_a_new_node_that_freezes_stops_the_reload(real_cluster: RealCluster, topic: str, code: Path) -> None:
    with swarm_of(real_cluster, topic, code) as swarm, ThreadPoolExecutor(1) as asking:
        swarm.wait_up(assigned=PARTITIONS)
        answer = asking.submit(swarm.ask, "reload", within_s=RELOADED_S)
        swarm.wait_until(lambda found: found["nodes"][0]["mold"] == 2 and found["nodes"][0]["state"] == "up")
        swarm.kill(1, signal.SIGSTOP)
        with pytest.raises(awoke.AwokeError, match="node 1, with the new code, gave no sign of life"):
            answer.result()
        found = swarm.wait_up(assigned=PARTITIONS)
        assert found["nodes"][0]["mold"] == 1
        assert swarm.stop() == 0
