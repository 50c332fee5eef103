"""A handler takes 50 ms, and each partition has 3,000 messages: default settings stop, resume and share work soon."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import wait_until

PARTITIONS = 4
MESSAGES = 3_000
"""In each partition: no test gets to their end."""
EACH_S = 0.05
COMMITS_WITHIN_S = 4.0
"""One commit a second is meant; a busy machine makes it late."""
KINDS = ("def", "async", "lanes", "output")
KEYS = 2
"""Of the messages of a partition."""
JOBS = {"lanes": KEYS}
"""The number of messages of a partition that run at once; 1 for the others."""
STOPS_WITHIN_S = 20.0
"""About one is meant; the shutdown's time-out is 30."""
JOINS_WITHIN_S = 25.0
"""A few are meant; a revocation's time-out is 30."""


class Slow:
    """A full topic, and what processes of `slow_app` have written down of it."""

    def __init__(self, servers: str, kind: str, log: Path) -> None:
        self.servers, self.kind, self._log = servers, kind, log
        self.topic, self.output, self.group = unique("slow"), unique("slow-output"), unique("group")

    def fill(self) -> None:
        """Produce the messages, with a few keys in each partition."""
        for partition in range(PARTITIONS):
            judge.feed(self.servers, self.topic, [b"value"] * MESSAGES, key_of=KEYS, partition=partition)

    def start(self) -> Process:
        """Start a process of the app."""
        env = {"SLOW_LOG": str(self._log), "SLOW_TOPIC": self.topic, "SLOW_OUTPUT": self.output}
        env |= {"SLOW_KIND": self.kind, "AWOKE_GROUP": self.group}
        # A member that was killed is missed after its session only.
        kafka = ("--kafka", "session.timeout.ms=3000", "--kafka", "heartbeat.interval.ms=500")
        return Process("run", "tests.scenarios.slow_app:app", "-b", self.servers, *kafka, env=env)

    def done(self) -> list[tuple[int, int, int]]:
        """Process, partition and offset of each message, in the order in which they were done."""
        return [
            (int(pid), int(partition), int(offset)) for pid, partition, offset in map(str.split, whole_lines(self._log))
        ]

    def wait_done(self, process: Process, count: int, within_s: float = 60.0) -> None:
        """Wait until a process has done this many messages."""

        def is_done() -> bool:
            return sum(pid == process.pid for pid, _, _ in self.done()) >= count

        wait_until(is_done, f"{count} messages are done", within_s)

    def repeated(self) -> Counter[int]:
        """Returns the number of repeated messages, by partition."""
        times = Counter((partition, offset) for _, partition, offset in self.done())
        found: Counter[int] = Counter()
        for (partition, _), count in times.items():
            found[partition] += count - 1
        return found

    def beyond_commits(self) -> Counter[int]:
        """Returns the number of messages that are done and not committed, by partition."""
        committed = judge.progress(self.servers, self.group, self.topic)
        places = {(partition, offset) for _, partition, offset in self.done()}
        return Counter(partition for partition, offset in places if offset >= committed[partition].committed)

    def go_on(self, count: int) -> Counter[int]:
        """Have another process go on where one has ended; what it repeats, by partition."""
        with self.start() as process:
            self.wait_done(process, count)
            process.signal(signal.SIGKILL)
            process.wait()
        return self.repeated()


Fixture = Callable[[str], Slow]


@pytest.fixture
def slow(real_cluster: RealCluster, tmp_path: Path) -> Fixture:
    """A full topic for a kind of route."""

    def make(kind: str) -> Slow:
        found = Slow(real_cluster.bootstrap_servers, kind, tmp_path / "log")
        real_cluster.create_topic(found.topic, PARTITIONS)
        real_cluster.create_topic(found.output)
        found.fill()
        return found

    return make


def stop(process: Process) -> None:
    """Stop a process in order, soon."""
    began_s = time.monotonic()
    process.signal(signal.SIGTERM)
    assert process.wait() == 0, process.output
    assert time.monotonic() - began_s < STOPS_WITHIN_S


@pytest.mark.parametrize("kind", [*KINDS, "class"])
def test_sigterm_ends_it_soon(slow: Fixture, kind: str) -> None:
    found = slow(kind)
    with found.start() as process:
        found.wait_done(process, 40)
        stop(process)


@pytest.mark.parametrize("kind", KINDS)
def test_after_sigterm_nearly_nothing_is_repeated(slow: Fixture, kind: str) -> None:
    found = slow(kind)
    with found.start() as process:
        found.wait_done(process, 40)
        process.signal(signal.SIGTERM)
        process.wait()
    repeated = found.go_on(80)
    assert max(repeated.values(), default=0) <= JOBS.get(kind, 1), repeated


@pytest.mark.parametrize(
    "kind", ["def", "lanes", *(pytest.param(each, marks=pytest.mark.soak) for each in ("async", "output"))]
)
def test_after_a_kill_the_work_since_the_last_commit_is_repeated(slow: Fixture, kind: str) -> None:
    found, jobs = slow(kind), JOBS.get(kind, 1)
    allowed = int(COMMITS_WITHIN_S / EACH_S) * jobs
    with found.start() as process:
        found.wait_done(process, 2 * allowed * PARTITIONS, within_s=200)  # Twice what may be without a commit.
        process.signal(signal.SIGKILL)
        process.wait()
    beyond = found.beyond_commits()
    # With lanes, what follows a message that is not done yet can't be committed, however far the others are.
    assert kind == "lanes" or max(beyond.values(), default=0) <= allowed, f"without a commit: {beyond}"
    repeated = found.go_on(400)
    assert all(repeated[each] <= beyond[each] + jobs for each in repeated), (repeated, beyond)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_joins_has_work_soon(slow: Fixture, kind: str) -> None:
    found = slow(kind)
    with found.start() as first:
        found.wait_done(first, 40)
        with found.start() as second:
            second.wait_for("app.started")
            began_s = time.monotonic()
            found.wait_done(second, 1)
            assert time.monotonic() - began_s < JOINS_WITHIN_S
            found.wait_done(second, 40)
            stop(second)
            stop(first)
    assert sum(found.repeated().values()) <= 2 * PARTITIONS
