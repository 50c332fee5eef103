"""A swarm on real Kafka: nodes die, hang, leak and are replaced; messages flow, and no process is left behind."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.swarms import TARGET, Swarm, gone, is_in_order
from tests.support.waiting import elapse, stays_so

PARTITIONS = 4
KILLS = int(os.environ.get("AWOKE_KILLS", "6"))


@pytest.fixture
def topic(real_cluster: RealCluster) -> str:
    name = unique("swarm")
    real_cluster.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def flow(real_cluster: RealCluster, topic: str) -> Iterator[Flow]:
    with Flow(real_cluster.bootstrap_servers, topic) as flow:
        yield flow


class Flow:
    """Messages that flow into a topic until it is stopped."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._servers, self._topic = bootstrap_servers, topic
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with awoke.Producer(self._servers) as producer:
            while not self._stop.wait(0.02):
                awoke.wait_all([producer.produce(self._topic, b"x", partition=each) for each in range(PARTITIONS)], 30)
                self.sent += PARTITIONS

    def stop(self) -> int:
        """No more; how many there were."""
        self._stop.set()
        self._thread.join()
        return self.sent

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def send(cluster: RealCluster, topic: str, value: bytes, partition: int = 0) -> None:
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        producer.produce(topic, value, partition=partition).wait(30)


def check(swarm: Swarm, sent: int) -> None:
    """Nothing was lost, and each partition came in order."""
    swarm.wait_done(sent)
    done = swarm.done()
    assert sum(len(set(offsets)) for offsets in done.values()) == sent
    assert all(is_in_order(offsets) for offsets in done.values())


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
        status, text = swarm.get(port, "/metrics")
        assert status == 200
        assert 'awoke_node_up{node="2"} 1' in text
        assert text.count("# TYPE awoke_messages_total counter") == 1
        assert all(f'awoke_messages_total{{node="{node}",' in text for node in (1, 2))
        assert swarm.get(port, "/elsewhere")[0] == 404
        check(swarm, flow.stop())
        assert swarm.stop() == 0
        assert not Path(swarm.socket).exists()
        offsets = swarm.done()
    assert [swarm.process.output.count(f"a {kind} function was called") for kind in ("start-up", "shutdown")] == [2, 2]
    assert sum(map(len, offsets.values())) == flow.sent, "a stop in order repeats nothing"


@pytest.mark.timeout(240)
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
    early = 0
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, env=env) as swarm:
        for _ in range(5):
            dead = swarm.wait_up()["nodes"][0]["pid"]
            pidfd = os.pidfd_open(dead)
            is_over = select.poll()
            is_over.register(pidfd, select.POLLIN)
            swarm.kill(1)
            while not is_over.poll(0):
                is_known = swarm.status()["nodes"][0]["state"] == "ending"
                if is_known and not is_over.poll(0):
                    early += 1
                    break
            os.close(pidfd)
            gone = (dead, None)
            swarm.wait_until(lambda found, gone=gone: found["nodes"][0]["pid"] not in gone)  # type: ignore[misc]
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


SILENT_AFTER_S = 10.0
"""The default of `--silent-after-s`."""


@pytest.mark.timeout(180)
def test_a_frozen_node_is_replaced_within_its_deadline_and_5_s(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        frozen = swarm.kill(1, signal.SIGSTOP)
        frozen_s = time.monotonic()
        swarm.wait_until(lambda found: all(each["state"] == "up" and each["pid"] != frozen for each in found["nodes"]))
        assert time.monotonic() - frozen_s < SILENT_AFTER_S + 5.0
        assert "no sign of life" in swarm.process.output
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


@pytest.mark.timeout(180)
def test_a_node_that_was_frozen_for_a_moment_is_left_alone(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        pid = swarm.kill(1, signal.SIGSTOP)
        elapse(SILENT_AFTER_S - 3.0, "its last sign of life may be 2 s old")
        os.kill(pid, signal.SIGCONT)
        swarm.wait_until(lambda found: sum(each["assigned"] for each in found["nodes"]) == PARTITIONS)
        check(swarm, flow.stop())
        found = swarm.status()
        assert found["nodes"][0]["pid"] == pid
        assert [each["restarts"] for each in found["nodes"]] == [0, 0]
        assert swarm.stop() == 0


@pytest.mark.timeout(180)
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
        began_s = time.monotonic()
        swarm.process.wait_for("has worked on one job", 30)
        assert time.monotonic() - began_s < 3 + 5
        swarm.wait_until(lambda found: sum(each["restarts"] for each in found["nodes"]) == 1)
        swarm.wait_up(assigned=PARTITIONS)
        assert "misbehave" in swarm.process.output, "the stacks of the node"
        flow.stop()
        check(swarm, flow.sent + 1)
        assert swarm.stop() == 0


def test_a_busy_node_is_left_alone(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    """The GIL held for longer than a sign of life may take is no reason."""
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--silent-after-s", "3") as swarm:
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
        swarm.process.wait_for("it is replaced in order", 40)
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
        swarm.process.wait_for("it is replaced in order", 60)
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
        swarm.process.wait_for("more than it may", 40)
        swarm.wait_until(lambda found: sum(each["restarts"] for each in found["nodes"]) == 1)
        swarm.wait_up(assigned=PARTITIONS)
        assert swarm.stop() == 0, swarm.process.output


@pytest.mark.timeout(180)
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


@pytest.mark.timeout(180)
def test_a_swarm_grows_and_shrinks(real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--no-static-members", nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        swarm.ask("scale", nodes=3)
        swarm.wait_up(3, assigned=PARTITIONS)
        swarm.process.signal(signal.SIGTTOU)
        swarm.wait_up(2, assigned=PARTITIONS)
        swarm.process.signal(signal.SIGTTIN)
        swarm.wait_up(3, assigned=PARTITIONS)
        with pytest.raises(awoke.ConfigError, match="at least 1"):
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
        elapse(0.5, "the node gets the command")
        send(real_cluster, topic, b"2")
        stays_so(lambda: sum(map(len, swarm.done().values())) == 1, "the second message is left", for_s=1.0)
        assert swarm.stop() == 0


def test_a_dump_shows_stacks_and_ends_no_process(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1, assigned=PARTITIONS)
        swarm.ask("dump", node=1)
        swarm.process.wait_for("wait_and_stop", 10)
        with pytest.raises(awoke.ConfigError, match="no node 7"):
            swarm.ask("dump", node=7)
        with pytest.raises(awoke.ConfigError, match="no command"):
            swarm.ask("dance")
        assert swarm.stop() == 0


def test_a_node_that_crashes_at_boot_ends_the_swarm(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, env={"SWARM_BOOT": "crash"}) as swarm:
        assert swarm.process.wait(60) == 4
        assert "ends again and again" in swarm.process.output


def test_a_term_during_a_back_off_ends_at_once(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    options = ("--restarts-max", "100", "--restart-backoff-s", "30")
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, env={"SWARM_BOOT": "crash"}) as swarm:
        swarm.wait_until(lambda found: all(each["state"] == "waiting" for each in found["nodes"]))
        assert swarm.stop(10) == 0


def test_a_term_in_the_middle_of_a_rebalance_loses_and_repeats_nothing(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path) as swarm:
        swarm.wait_up(assigned=PARTITIONS)
        swarm.ask("scale", nodes=4)
        swarm.process.wait_for("node 4 is up", 40)  # It has asked to join; the others are asked to give partitions up.
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
            assert swarm.process.wait(40) in (0, 1, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("env", "options", "text"),
    [
        ({"SWARM_IMPORT": "thread"}, (), "early-bird"),
        ({"SWARM_IMPORT": "client"}, (), "Kafka clients while it is imported"),
        ({"SWARM_IMPORT": "raise"}, (), "no good at all"),
        ({"SWARM_TOPIC": "there-is-no-such-topic"}, (), "does not exist"),
        ({}, ("--memory-limit", "5M"), "below what the app has after its import"),
    ],
    ids=["thread", "client", "raise", "topic", "memory"],
)
def test_what_can_not_work_is_refused(
    real_cluster: RealCluster, topic: str, tmp_path: Path, env: dict[str, str], options: tuple[str, ...], text: str
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, *options, env=env) as swarm:
        assert swarm.process.wait(60) == 78, swarm.process.output
        assert text in swarm.process.output
        assert not Path(swarm.socket).exists()


@pytest.mark.timeout(180)
def test_a_supervisor_that_overslept_kills_no_node(
    real_cluster: RealCluster, topic: str, flow: Flow, tmp_path: Path
) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, "--silent-after-s", "3") as swarm:
        before = swarm.wait_up(assigned=PARTITIONS)
        pids = [each["pid"] for each in before["nodes"]]
        processes = [*pids, before["pid"]]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)  # As when the machine sleeps.
        elapse(9, "longer than the silence after which a node is killed")
        for pid in reversed(processes):
            os.kill(pid, signal.SIGCONT)
        swarm.process.wait_for("deadlines are moved", 10)
        elapse(4, "a node that seems silent would be killed in this time")
        found = swarm.wait_up(assigned=PARTITIONS)
        assert [each["pid"] for each in found["nodes"]] == pids
        check(swarm, flow.stop())
        assert swarm.stop() == 0


@pytest.mark.timeout(180)
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
        assert gone({child}, 5.0) == set()


def test_two_swarms_do_not_share_a_socket(real_cluster: RealCluster, topic: str, tmp_path: Path) -> None:
    with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as swarm:
        swarm.wait_up(1)
        with Swarm(real_cluster.bootstrap_servers, topic, tmp_path, nodes=1) as other:
            assert other.process.wait(30) == 78
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
