"""Messages with keys for an app with many lanes, and what its processes wrote down of them."""

from __future__ import annotations

import random
import signal
from collections import defaultdict
from pathlib import Path

import awoke
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import became


def fill(bootstrap_servers: str, topic: str, messages: int, keys: int) -> None:
    """Messages into partition 0, with random keys."""
    chance = random.Random(11)
    with awoke.Producer(bootstrap_servers) as producer:
        for number in range(messages):
            producer.produce(topic, b"%d" % number, key=b"%d" % chance.randrange(keys), partition=0)
        assert producer.flush(120)


class Done:
    """The messages that one process wrote down, in its order."""

    def __init__(self, file: Path) -> None:
        pairs = [line.split(" ") for line in whole_lines(file)]
        self.offsets = [int(pair[0]) for pair in pairs]
        self.keys = [pair[1].encode() for pair in pairs]

    def out_of_order(self) -> int:
        """The number of times that a message of a key came before an earlier one."""
        last: dict[bytes, int] = defaultdict(lambda: -1)
        count = 0
        for offset, key in zip(self.offsets, self.keys, strict=True):
            count += offset <= last[key]
            last[key] = offset
        return count


def lines_of(file: Path) -> int:
    """Returns the number of messages that are written down."""
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_for_lines(file: Path, count: int, within_s: float, process: Process) -> None:
    """Waits until a process has written `count` lines."""

    def are_written() -> bool:
        if lines_of(file) >= count:
            return True
        assert process.is_running, process.output
        return False

    is_in_time = became(are_written, within_s, every_s=0.05)
    assert is_in_time, f"only {lines_of(file)} of {count} messages after {within_s} s"


class Killed:
    """Two processes of the app, the first of which is killed in the middle."""

    def __init__(self, bootstrap_servers: str, topic: str, messages: int, folder: Path, **env: str) -> None:
        self._servers, self._topic, self._messages = bootstrap_servers, topic, messages
        self._files = folder / "first", folder / "second"
        self._env = env
        self.committed = 0
        """The group's offset when the first process was dead."""

    def run(self, kill_at: int, within_s: float, hangs_at: int = -1) -> None:
        """Kills the first at `kill_at` written messages, and lets the second go on until all are written.

        The first never ends the message at `hangs_at`, so that its committed offset stays there.
        """
        with self._process(self._files[0], LANES_HANGS_AT=str(hangs_at)) as process:
            wait_for_lines(self._files[0], kill_at, within_s, process)
            process.signal(signal.SIGKILL)
            process.wait()
        with awoke.Admin(self._servers) as admin:
            self.committed = admin.group_offsets("lanes")[(self._topic, 0)]
        with self._process(self._files[1]) as process:
            done = set(Done(self._files[0]).offsets)
            missing = self._messages - len(done)
            wait_for_lines(self._files[1], missing, within_s, process)
            every = set(range(self._messages))
            became(lambda: done | set(Done(self._files[1]).offsets) == every, 50.0, every_s=0.05)
            process.signal(signal.SIGTERM)
            assert process.wait() == 0

    def _process(self, file: Path, **env: str) -> Process:
        env = {"LANES_TOPIC": self._topic, "LANES_LOG": str(file), **self._env, **env}
        kafka = ["--kafka", "session.timeout.ms=3000", "--kafka", "heartbeat.interval.ms=500"]
        return Process("run", "tests.scenarios.lanes_app:app", "--bootstrap-servers", self._servers, *kafka, env=env)

    @property
    def lost(self) -> int:
        """Messages that neither wrote down."""
        return self._messages - len(set(self.done[0].offsets) | set(self.done[1].offsets))

    @property
    def repeated(self) -> int:
        """Messages that both wrote down."""
        return len(set(self.done[0].offsets) & set(self.done[1].offsets))

    @property
    def done_beyond(self) -> int:
        """Messages that the first wrote down at or beyond the committed offset: a bare offset would repeat them all."""
        return sum(offset >= self.committed for offset in set(self.done[0].offsets))

    @property
    def done(self) -> tuple[Done, Done]:
        """The messages of both."""
        return Done(self._files[0]), Done(self._files[1])
