"""A million messages through an app that is stopped, or killed, in the middle: none is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import became, wait_until

MESSAGES = 1_000_000
PARTITIONS = 8


@pytest.fixture(scope="module")
def full_topic() -> Iterator[tuple[RealCluster, str]]:
    """A million messages of 100 bytes, on a broker of their own."""
    cluster = RealCluster()
    name = unique("million")
    cluster.create_topic(name, PARTITIONS)
    with awoke.Producer(cluster.bootstrap_servers) as producer:
        for _ in range(MESSAGES):
            producer.produce(name, b"x" * 100)
        assert producer.flush(60)
    yield cluster, name
    cluster.close()


class Ledger:
    """The lines of the processes: ranges of offsets, by partition, in the order in which they were processed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def ranges(self) -> list[tuple[int, int, int]]:
        return [(int(a), int(b), int(c)) for a, b, c in map(str.split, whole_lines(self._file))]

    def count(self) -> int:
        return sum(last - first + 1 for _, first, last in self.ranges())

    def missing(self, ends: dict[int, int]) -> int:
        covered: dict[int, set[int]] = {partition: set() for partition in ends}
        for partition, first, last in self.ranges():
            covered[partition].update(range(first, last + 1))
        return sum(end - len(covered[partition]) for partition, end in ends.items())


def start(cluster: RealCluster, group: str, topic: str, file: Path) -> Process:
    env = {"COUNTING_TOPIC": topic, "COUNTING_LOG": str(file), "AWOKE_GROUP": group, "AWOKE_COMMIT_INTERVAL_S": "0.1"}
    arguments = ("run", "tests.scenarios.counting_app:app", "--bootstrap-servers", cluster.bootstrap_servers)
    # A killed member is missed after its session only; the smallest that the broker allows.
    return Process(*arguments, "--kafka", "session.timeout.ms=3000", "--kafka", "heartbeat.interval.ms=500", env=env)


def wait_until_processed(ledger: Ledger, count: int, within_s: float = 60.0) -> None:
    """Waits until another process has written `count` messages to its file."""
    wait_until(lambda: ledger.count() >= count, f"{count} messages are processed", within_s, every_s=0.02)


def committed(cluster: RealCluster, group: str) -> int:
    return sum(cluster.admin.group_offsets(group).values())


def test_a_stop_in_the_middle_loses_and_repeats_nothing(full_topic: tuple[RealCluster, str], tmp_path: Path) -> None:
    cluster, topic = full_topic
    group, ledger = unique("stopped"), Ledger(tmp_path / "ledger")
    with start(cluster, group, topic, tmp_path / "ledger") as process:
        wait_until_processed(ledger, 50_000)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output
    stopped_at = ledger.count()
    assert committed(cluster, group) == stopped_at
    with start(cluster, group, topic, tmp_path / "ledger") as process:
        wait_until_processed(ledger, MESSAGES)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output
    ends = cluster.admin.end_offsets(topic)
    assert ledger.missing(ends) == 0
    assert ledger.count() == MESSAGES
    assert committed(cluster, group) == MESSAGES == sum(ends.values())


def test_a_kill_in_the_middle_loses_nothing(full_topic: tuple[RealCluster, str], tmp_path: Path) -> None:
    cluster, topic = full_topic
    group, ledger = unique("killed"), Ledger(tmp_path / "ledger")
    with start(cluster, group, topic, tmp_path / "ledger") as process:
        wait_until_processed(ledger, 50_000)
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    killed_at = ledger.count()
    with start(cluster, group, topic, tmp_path / "ledger") as process:
        wait_until_processed(ledger, MESSAGES)
        ends = cluster.admin.end_offsets(topic)
        became(lambda: ledger.missing(ends) == 0, 10.0, every_s=0.05)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0, process.output
    assert ledger.missing(ends) == 0
    assert committed(cluster, group) == MESSAGES
    repeated = ledger.count() - MESSAGES
    assert 0 <= repeated <= killed_at
