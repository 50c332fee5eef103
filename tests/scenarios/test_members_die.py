"""One of two members is killed, or frozen for longer than its session: the other does the rest, and nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.processes import Process
from tests.support.waiting import became

PARTITIONS = 4
MESSAGES = 2_000
"""In each partition."""


class Log:
    """The lines of the members, in order."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self._file.read_text().splitlines()] if self._file.exists() else []

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


@pytest.fixture
def members(real_cluster: RealCluster, tmp_path: Path) -> tuple[Callable[[str], Process], Log, Callable[[], int]]:
    """A way to start a member by its name, what they write down, and what their group has committed."""
    topic, group = unique("members"), unique("group")
    real_cluster.create_topic(topic, PARTITIONS)
    with awoke.Producer(real_cluster.bootstrap_servers) as producer:
        for partition in range(PARTITIONS):
            for _ in range(MESSAGES):
                producer.produce(topic, b"value", partition=partition)
        assert producer.flush(60)

    def start(name: str) -> Process:
        env = {"MEMBER_LOG": str(tmp_path / "log"), "MEMBER_NAME": name, "MEMBER_TOPIC": topic, "AWOKE_GROUP": group}
        arguments = ("run", "tests.scenarios.member_app:app", "--bootstrap-servers", real_cluster.bootstrap_servers)
        return Process(*arguments, env=env)

    return start, Log(tmp_path / "log"), lambda: sum(real_cluster.admin.group_offsets(group).values())


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


@pytest.mark.timeout(180)
def test_a_member_is_killed(members: tuple[Callable[[str], Process], Log, Callable[[], int]]) -> None:
    start, log, committed = members
    with start("one") as one, start("other") as other:
        log.wait_until(lambda: bool(log.batches("one")) and bool(log.batches("other")))
        one.signal(signal.SIGKILL)
        assert one.wait() == -signal.SIGKILL
        log.wait_until(lambda: log.missing() == 0)
        other.signal(signal.SIGTERM)
        assert other.wait() == 0, other.output
    assert committed() == PARTITIONS * MESSAGES
    for name in ("one", "other"):
        check_order(log, name)


@pytest.mark.timeout(180)
def test_a_member_that_was_stopped_too_long_hears_that_it_lost_its_partitions(
    members: tuple[Callable[[str], Process], Log, Callable[[], int]],
) -> None:
    start, log, committed = members
    with start("one") as one, start("other") as other:
        log.wait_until(lambda: bool(log.batches("one")) and bool(log.batches("other")))
        before = len(log.hooks("other"))
        one.signal(signal.SIGSTOP)
        log.wait_until(lambda: "assigned" in log.hooks("other")[before:])
        one.signal(signal.SIGCONT)
        log.wait_until(lambda: "lost" in log.hooks("one"))
        log.wait_until(lambda: log.missing() == 0)
        for process in (one, other):
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.output
    assert committed() == PARTITIONS * MESSAGES
    for name in ("one", "other"):
        check_order(log, name)
