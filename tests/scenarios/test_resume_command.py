"""`awoke resume` lets a paused or stuck partition go on, in a single process and in a swarm, and says what is wrong."""

from __future__ import annotations

import functools
import os
import re
import signal
import stat
from pathlib import Path

import pytest

import awoke
from awoke.cli.swarm import ask
from awoke.swarm.questions import ANSWER_WITHIN_S
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.swarms import Swarm
from tests.support.waiting import wait_until

TARGET = "tests.scenarios.resume_app:app"
PARTITIONS = 4
NO_RESET = ("--kafka", "auto.offset.reset=error")


class App:
    """A topic, and the app that is to process its messages."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.servers, self.topic, self.folder = cluster.bootstrap_servers, unique("resume"), folder
        cluster.create_topic(self.topic, PARTITIONS)
        self.socket, self.log, self.repair = str(folder / "app.sock"), folder / "done", folder / "repair"
        self.env = {
            "SWARM_TOPIC": self.topic,
            "AWOKE_GROUP": self.topic,
            "SWARM_LOG": str(self.log),
            "RESUME_REPAIR": str(self.repair),
        }

    def feed(self) -> None:
        """Send a message to each partition."""
        with awoke.Producer(self.servers) as producer:
            awoke.wait_all([producer.produce(self.topic, b"x", partition=each) for each in range(PARTITIONS)], 30)

    def single(self, *options: str) -> Process:
        """Start it as a single process, with messages waiting for it."""
        self.feed()
        kafka = ("--kafka", "session.timeout.ms=3000", "--kafka", "heartbeat.interval.ms=500")
        return Process("run", TARGET, "--socket", self.socket, "-b", self.servers, *kafka, *options, env=self.env)

    def swarm(self, *options: str) -> Swarm:
        """Start it as a swarm of two nodes."""
        swarm = Swarm(self.servers, self.topic, self.folder, *options, env=self.env, target=TARGET)
        self.socket = swarm.socket
        return swarm

    def feed_settled(self, swarm: Swarm) -> None:
        """Send the messages when both nodes have their partitions: a rebalance would end a pause."""
        swarm.wait_until(lambda found: [each["assigned"] for each in found["nodes"]] == [2, 2])
        self.feed()

    def done(self) -> list[int]:
        """The partitions whose message was processed."""
        return sorted(int(line.split(" ")[1]) for line in whole_lines(self.log))

    def wait_done(self, partitions: list[int]) -> None:
        """Wait until the messages of these partitions were processed, once each."""
        wait_until(lambda: self.done() == partitions, f"the messages of {partitions} are done", 60)

    def asks(self, command: str, *arguments: str, code: int = 0) -> str:
        """Run a command for the app; its only line."""
        with Process(command, TARGET, *arguments, "--socket", self.socket) as process:
            assert process.wait() == code, process.output
            (line,) = process.output.splitlines()
            return line

    def resume(self, partition: int, topic: str = "", code: int = 0) -> str:
        """Run `awoke resume`; its only line."""
        return self.asks("resume", topic or self.topic, str(partition), code=code)

    def resumes(self, partition: int) -> bool:
        """Ask for a resume as the command does; whether there was one."""
        try:
            return bool(ask(TARGET, self.socket, "resume", topic=self.topic, partition=partition)["done"])
        except awoke.AwokeError as error:
            if "neither paused nor stuck" in str(error):
                return False
            raise


@pytest.fixture
def app(real_cluster: RealCluster, tmp_path: Path) -> App:
    return App(real_cluster, tmp_path)


def wait_for_each(process: Process, event: str, partitions: int = PARTITIONS) -> None:
    """Wait until the log has this event for each partition."""

    def is_there(partition: int) -> bool:
        return re.search(rf"{re.escape(event)} .*\bpartition={partition}\b", process.output) is not None

    def are_there() -> bool:
        assert process.is_running, process.output
        return all(is_there(partition) for partition in range(partitions))

    wait_until(are_there, f"{event} for {partitions} partitions", 60)


def refused(topic: str, wrong: int, right: int) -> str:
    """The answer to a skip of another message than the one that fails."""
    return f"error: skip failed: {topic} offset {wrong} does not fail; failing now: {right}"


def stop(process: Process) -> None:
    """Stop a process in order."""
    process.signal(signal.SIGTERM)
    assert process.wait(60) == 0, process.output


def test_paused_partitions_of_a_single_process_go_on(app: App) -> None:
    with app.single() as process:
        wait_for_each(process, "partition.paused")
        assert stat.S_IMODE(os.stat(app.socket).st_mode) == 0o600
        app.repair.touch()
        assert app.resume(1) == f"resumed {app.topic}[1]"
        app.wait_done([1])
        assert app.resume(3) == f"resumed {app.topic}[3]"
        app.wait_done([1, 3])
        assert app.resume(1, code=1) == f"error: resume failed: {app.topic}[1] is neither paused nor stuck"
        stop(process)
    assert not os.path.exists(app.socket)
    assert app.resume(0, code=2).startswith(f"error: no process or swarm of {TARGET} listens at {app.socket}")


def test_a_partition_that_fails_again_is_paused_again(app: App) -> None:
    with app.single() as process:
        wait_for_each(process, "partition.paused")
        app.resume(2)
        wait_until(lambda: process.output.count("partition.paused ") == PARTITIONS + 1, "it is paused again", 60)
        app.repair.touch()
        app.resume(2)
        app.wait_done([2])
        stop(process)


def test_what_is_wrong_with_a_resume_is_said(app: App) -> None:
    with app.single() as process:
        wait_for_each(process, "partition.paused")
        assert "nothing[0] is not assigned to this process" in app.resume(0, "nothing", code=1)
        assert f"{app.topic}[7] is not assigned to this process" in app.resume(7, code=1)
        for wrong in ("first", "-1"):
            with Process("resume", TARGET, app.topic, wrong, "--socket", app.socket) as refused:
                assert refused.wait() == 2
                assert "Traceback" not in refused.output
        assert "runs in a single process" in app.asks("status", code=2)
        assert app.done() == []
        stop(process)


def test_paused_partitions_of_a_swarm_go_on(app: App) -> None:
    with app.swarm() as swarm:
        app.feed_settled(swarm)
        wait_for_each(swarm.process, "partition.paused")
        app.repair.touch()
        for partition in range(PARTITIONS):
            assert app.resume(partition) == f"resumed {app.topic}[{partition}]"
            app.wait_done([*range(partition + 1)])
        said = "is neither paused nor stuck"
        assert app.resume(0, code=1) == f"error: resume failed: {app.topic}[0] {said}"
        for place, found in (
            (f"{app.topic}[7]", app.resume(7, code=1)),
            ("nothing[0]", app.resume(0, "nothing", code=1)),
        ):
            said = f"{place} is not assigned to any node: ask the process of the group that has it"
            assert found == f"error: resume failed: {said}"
        assert len({line.split(" ")[0] for line in whole_lines(app.log)}) == 2, "both nodes held some"
        assert swarm.stop() == 0


def test_a_node_that_does_not_answer_is_named(app: App) -> None:
    # A frozen node is replaced when it has been silent for long: not before the command has asked it.
    with app.swarm("--silent-after-s", "90") as swarm:
        app.feed_settled(swarm)
        wait_for_each(swarm.process, "partition.paused")
        frozen = swarm.kill(2, signal.SIGSTOP)
        try:
            found = app.resume(0, "nothing", code=1)
        finally:
            os.kill(frozen, signal.SIGCONT)
        assert "nothing[0] is not assigned to any node that answered" in found
        assert found.endswith(f"; node 2 did not answer within {ANSWER_WITHIN_S:g} s")
        assert swarm.stop() == 0


def test_stuck_partitions_of_a_single_process_go_on_from_their_first_message(app: App) -> None:
    app.repair.touch()
    with app.single(*NO_RESET) as process:
        wait_for_each(process, "partition.stuck")
        for partition in range(PARTITIONS):
            assert app.resume(partition) == f"resumed {app.topic}[{partition}]"
        app.wait_done([*range(PARTITIONS)])
        assert "neither paused nor stuck" in app.resume(0, code=1)
        stop(process)


def test_stuck_partitions_of_a_swarm_go_on_from_their_first_message(app: App) -> None:
    app.repair.touch()
    with app.swarm(*NO_RESET) as swarm:
        app.feed_settled(swarm)
        for partition in range(PARTITIONS):
            # How long after the last rebalance its new node notices that it is stuck is not to be seen from here.
            wait_until(functools.partial(app.resumes, partition), f"partition {partition} is resumed", 60)
        app.wait_done([*range(PARTITIONS)])
        assert "neither paused nor stuck" in app.resume(0, code=1)
        assert swarm.stop() == 0


def test_the_second_process_of_an_app_runs_without_a_socket(app: App) -> None:
    with app.single() as first:
        wait_for_each(first, "partition.paused")
        with app.single() as second:
            second.wait_for("no commands (awoke resume, skip, threads) for this process: another process of the app")
            second.wait_for("partitions.assigned")
            stop(second)
        assert "is not assigned to this process" in app.resume(7, code=1), "the first one's socket is there"
        stop(first)


def test_the_socket_of_a_killed_process_is_replaced(app: App) -> None:
    with app.single() as killed:
        wait_for_each(killed, "partition.paused")
        killed.signal(signal.SIGKILL)
        killed.wait()
    assert os.path.exists(app.socket)
    assert "Connection refused" in app.resume(0, code=2)
    with app.single() as process:
        wait_for_each(process, "partition.paused")
        app.repair.touch()
        app.resume(0)
        app.wait_done([0, 0])
        stop(process)


def test_the_message_that_holds_up_a_single_process_is_skipped(app: App) -> None:
    with app.single() as process:
        wait_for_each(process, "partition.paused")
        place = f"{app.topic}[1]"
        assert app.asks("skip", app.topic, "1", "1", code=1) == refused(place, 1, 0)
        assert app.asks("skip", app.topic, "1", "0") == f"{place} continues after offset 0"
        process.wait_for("message.skipped handler='handle'")
        assert app.asks("skip", app.topic, "1", "0", code=1) == f"error: skip failed: no message of {place} fails"
        assert f"{app.topic}[9] is not assigned to this process" in app.asks("skip", app.topic, "9", "0", code=1)
        app.repair.touch()
        with awoke.Producer(app.servers) as producer:
            producer.produce(app.topic, b"behind", partition=1).wait(30)
        app.wait_done([1])
        assert app.log.read_bytes().split()[2:] == [b"1", b"behind"], "offset 1, which came behind the skipped one"
        stop(process)
    assert app.asks("skip", app.topic, "0", "0", code=2).startswith("error: no process or swarm of")


def test_the_message_that_holds_up_a_swarm_is_skipped(app: App) -> None:
    with app.swarm() as swarm:
        app.feed_settled(swarm)
        wait_for_each(swarm.process, "partition.paused")
        for partition in range(PARTITIONS):
            place = f"{app.topic}[{partition}]"
            assert app.asks("skip", app.topic, str(partition), "7", code=1) == refused(place, 7, 0)
            assert app.asks("skip", app.topic, str(partition), "0") == f"{place} continues after offset 0"
        wait_for_each(swarm.process, "message.skipped")
        said = f"error: skip failed: no message of {app.topic}[0] fails"
        assert app.asks("skip", app.topic, "0", "0", code=1) == said
        app.repair.touch()
        app.feed()
        app.wait_done([*range(PARTITIONS)])
        assert swarm.stop() == 0
