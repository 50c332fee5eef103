"""One of two members is killed, or frozen for longer than its session: the other does the rest, and nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import became, wait_until

PARTITIONS = 4
MESSAGES = 2_000
"""In each partition."""
NAMES = ("one", "other")


class Log:
    """The lines of the members, in order."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def lines(self) -> list[list[str]]:
        return [line.split() for line in whole_lines(self._file)]

    def hooks(self, name: str) -> list[str]:
        return [line[1] for line in self.lines() if line[0] == name and line[1] != "batch"]

    def batches(self, name: str | None = None) -> list[tuple[int, int, int]]:
        found = [line for line in self.lines() if line[1] == "batch" and name in (None, line[0])]
        return [(int(partition), int(first), int(last)) for _, _, partition, first, last in found]

    def missing(self) -> int:
        done = {(at, offset) for at, first, last in self.batches() for offset in range(first, last + 1)}
        return PARTITIONS * MESSAGES - len(done)

    def wait_until(self, is_so: Callable[[], bool], within_s: float = 90.0) -> None:
        """Waits until the other processes have written the expected lines."""
        is_in_time = became(is_so, within_s, every_s=0.02)
        assert is_in_time, f"{self.missing()} missing; the last lines: {self.lines()[-5:]}"


class Members(NamedTuple):
    """The two members of a group."""

    start: Callable[[str], Process]
    """Starts one by its name."""
    log: Log
    """The file that they write to."""
    fill: Callable[[], None]
    """Produces the messages."""
    committed: Callable[[], int]
    """Returns the number of messages that the group has committed."""

    def work(self) -> None:
        """Produces when both members have partitions, and waits until both work."""
        self.log.wait_until(lambda: all("assigned" in self.log.hooks(name) for name in NAMES))
        self.fill()
        self.log.wait_until(lambda: all(self.log.batches(name) for name in NAMES))

    def finish(self) -> None:
        """Waits until all are done and committed: the other member repeats the uncommitted work of a dead one."""
        self.log.wait_until(lambda: self.log.missing() == 0)
        wait_until(lambda: self.committed() == PARTITIONS * MESSAGES, "all are committed", 60)


@pytest.fixture
def members(real_cluster: RealCluster, tmp_path: Path) -> Members:
    topic, group = unique("members"), unique("group")
    real_cluster.create_topic(topic, PARTITIONS)

    def fill() -> None:
        with awoke.Producer(real_cluster.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                for _ in range(MESSAGES):
                    producer.produce(topic, b"value", partition=partition)
            assert producer.flush(60)

    def start(name: str) -> Process:
        env = {"MEMBER_LOG": str(tmp_path / "log"), "MEMBER_NAME": name, "MEMBER_TOPIC": topic, "AWOKE_GROUP": group}
        arguments = ("run", "tests.scenarios.member_app:app", "--bootstrap-servers", real_cluster.bootstrap_servers)
        return Process(*arguments, env=env)

    def committed() -> int:
        return sum(real_cluster.admin.group_offsets(group).values())

    return Members(start, Log(tmp_path / "log"), fill, committed)


def check_order(log: Log, name: str) -> None:
    """A member's batches of a partition go forward, but where it was assigned anew."""
    for partition in range(PARTITIONS):
        reached = -1
        for line in (each for each in log.lines() if each[0] == name and each[2] == str(partition)):
            if line[1] == "assigned":
                reached = -1
            elif line[1] == "batch":
                assert int(line[3]) > reached, f"{name} went back in partition {partition}"
                reached = int(line[4])


def test_a_member_is_killed(members: Members) -> None:
    log = members.log
    with members.start("one") as one, members.start("other") as other:
        members.work()
        one.signal(signal.SIGKILL)
        assert one.wait() == -signal.SIGKILL
        members.finish()
        other.signal(signal.SIGTERM)
        assert other.wait() == 0, other.output
    assert members.committed() == PARTITIONS * MESSAGES
    for name in NAMES:
        check_order(log, name)


def test_a_member_that_was_stopped_too_long_hears_that_it_lost_its_partitions(members: Members) -> None:
    log = members.log
    with members.start("one") as one, members.start("other") as other:
        members.work()
        before = len(log.hooks("other"))
        one.signal(signal.SIGSTOP)
        log.wait_until(lambda: "assigned" in log.hooks("other")[before:])
        one.signal(signal.SIGCONT)
        log.wait_until(lambda: "lost" in log.hooks("one"))
        members.finish()
        for process in (one, other):
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.output
    assert members.committed() == PARTITIONS * MESSAGES
    for name in NAMES:
        check_order(log, name)
