"""A swarm on real Kafka: its nodes share the work, its commands and signals are heard, and it stops in order."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import RealCluster
from tests.support.processes import Process
from tests.support.swarms import PARTITIONS, TARGET, Flow, Swarm, check, send
from tests.support.waiting import became, elapse, wait_until


def test_nodes_share_the_work_and_stop_in_order(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--metrics-port", "0") as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        swarm.wait_until(lambda found: all(each["assigned"] > 0 for each in found["nodes"]))
        assert Path(swarm.socket).stat().st_mode & 0o777 == 0o600
        port = int(swarm.process.output.rpartition("http://127.0.0.1:")[2].split()[0])
        assert swarm.get(port, "/live")[0] == 200
        assert swarm.get(port, "/ready")[0] == 200
        assert swarm.get(port, "/health") == (200, '{"is_healthy":true,"reasons":[]}')
        swarm.wait_done(100)
        counters = [f'awoke_messages_total{{node="{node}",' for node in (1, 2)]
        # The first node may have done all of them before the other one joined.
        wait_until(lambda: all(each in swarm.get(port, "/metrics")[1] for each in counters), "both have worked")
        status, text = swarm.get(port, "/metrics")
        assert status == 200
        assert 'awoke_node_up{node="2"} 1' in text
        assert text.count("# TYPE awoke_messages_total counter") == 1
        assert all(each in text for each in counters)
        assert swarm.get(port, "/elsewhere")[0] == 404
        check(swarm, flow.stop())
        assert swarm.stop() == 0
        assert not Path(swarm.socket).exists()
        offsets = swarm.done()
    assert [swarm.process.output.count(f"a {kind} function was called") for kind in ("start-up", "shutdown")] == [2, 2]
    assert sum(map(len, offsets.values())) == flow.sent, "a stop in order repeats nothing"


def test_a_reload_under_load_loses_nothing(real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        before = {each["pid"] for each in swarm.wait_up(assigned=PARTITIONS)["nodes"]}
        swarm.process.signal(signal.SIGHUP)
        swarm.process.wait_for("every node has been replaced", 60)
        found = swarm.wait_up(assigned=PARTITIONS)
        assert not before & {each["pid"] for each in found["nodes"]}
        assert all(each["restarts"] == 0 for each in found["nodes"])
        check(swarm, flow.stop())
        done = swarm.done()
        assert swarm.stop() == 0
    assert sum(map(len, done.values())) == flow.sent, "nodes that stop in order repeat nothing"


def test_a_swarm_grows_and_shrinks(real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--no-static-members", nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        swarm.ask("scale", nodes=3)
        swarm.wait_up(3, assigned=PARTITIONS)
        swarm.process.signal(signal.SIGTTOU)
        swarm.wait_up(2, assigned=PARTITIONS)
        swarm.process.signal(signal.SIGTTIN)
        swarm.wait_up(3, assigned=PARTITIONS)
        with pytest.raises(awoke.ConfigError, match="from 1 to 1000, not 0"):
            swarm.ask("scale", nodes=0)
        swarm.ask("scale", nodes=1)
        swarm.wait_up(1, assigned=PARTITIONS)
        check(swarm, flow.stop())
        swarm.ask("stop")
        assert swarm.process.wait(60) == 0


def test_a_quiet_swarm_takes_no_more(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        send(real_cluster, topic, b"1")
        swarm.wait_done(1)
        swarm.ask("quiet")

        def is_left() -> bool:
            """Sends a message, and tells whether it is not processed. The node hears the command when it can."""
            before = sum(map(len, swarm.done().values()))
            send(real_cluster, topic, b"2")
            return not became(lambda: sum(map(len, swarm.done().values())) > before, 3.0)

        assert any(is_left() for _ in range(20)), "it takes all of them"
        assert swarm.stop() == 0


def test_a_dump_shows_stacks_and_ends_no_process(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        swarm.ask("dump", node=1)
        swarm.process.wait_for("wait_and_stop")
        with pytest.raises(awoke.ConfigError, match="no node 7"):
            swarm.ask("dump", node=7)
        with pytest.raises(awoke.ConfigError, match="no command"):
            swarm.ask("dance")
        assert swarm.stop() == 0


def test_a_term_in_the_middle_of_a_rebalance_loses_and_repeats_nothing(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        swarm.ask("scale", nodes=4)
        swarm.process.wait_for("node 4 is up")  # It has asked to join; the others are asked to give partitions up.
        assert swarm.stop() == 0, swarm.process.output
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        check(swarm, flow.stop())
        assert swarm.stop() == 0
        offsets = swarm.done()
    assert sum(map(len, offsets.values())) == flow.sent, "both ended in order"


def test_a_term_while_nodes_boot_ends_them(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    for delay_s in (0.1, 0.8, 1.2, 1.6):
        with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=3) as swarm:
            swarm.process.says("process", delay_s)
            elapse(delay_s / 4, "the signal comes at another moment of the start")
            swarm.process.signal(signal.SIGTERM)
            # Before it hears signals, it ends as any process does.
            assert swarm.process.wait(60) in (0, 1, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("env", "options", "text"),
    [
        ({"SWARM_IMPORT": "raise"}, (), "no good at all"),
        ({"SWARM_TOPIC": "there-is-no-such-topic"}, (), "does not exist"),
        ({}, ("--memory-limit", "5M"), "below what the app has after its import"),
    ],
    ids=["raise", "topic", "memory"],
)
def test_what_can_not_work_is_refused(
    real_cluster: RealCluster, topic: str, tmp_path: Path, env: dict[str, str], options: tuple[str, ...], text: str
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, env=env) as swarm:
        assert swarm.process.wait(60) == 78, swarm.process.output
        assert text in swarm.process.output
        assert not Path(swarm.socket).exists()


def test_two_swarms_do_not_share_a_socket(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1)
        with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as other:
            assert other.process.wait() == 78
            assert "another swarm listens" in other.process.output
        assert swarm.stop() == 0


def test_the_command_line_shows_it(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        with Process("status", TARGET, "--socket", swarm.socket) as shown:
            assert shown.wait() == 0
            assert "up" in shown.output
        with Process("stop", TARGET, "--socket", swarm.socket) as stopping:
            assert stopping.wait() == 0
        assert swarm.process.wait(60) == 0
    with Process("status", TARGET, "--socket", swarm.socket) as shown:
        assert shown.wait() == 2
        assert "no swarm of" in shown.output
