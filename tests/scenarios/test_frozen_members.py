"""Members are frozen for longer than their session and go on: they commit what they handle, and read new topics."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import elapse, wait_until

SESSION_S = 3.0
"""Of `member_app`."""
MEMBERS = 6
PARTITIONS = 6
FROZEN_S = 1.5 * SESSION_S
ROUNDS = int(os.environ.get("AWOKE_FREEZES", "1"))
BACKLOG = 2_000
"""In each partition, before a freeze: the members are in the midst of it."""
WITHIN_S = 60.0


class Members:
    """Processes of `member_app`, and the lines that they write down."""

    def __init__(self, servers: str, topic: str, group: str, log: Path, **env: str) -> None:
        self.servers, self.topic, self.group, self._log = servers, topic, group, log
        self.processes: list[Process] = []
        self._env = env

    def start(self, stack: contextlib.ExitStack, members: int = MEMBERS) -> None:
        """Start them all."""
        for number in range(members):
            self.processes.append(stack.enter_context(self._start(f"member-{number}")))

    def _start(self, name: str) -> Process:
        env = {"MEMBER_LOG": str(self._log), "MEMBER_NAME": name, "MEMBER_TOPIC": self.topic, **self._env}
        arguments = ("run", "tests.scenarios.member_app:app", "--bootstrap-servers", self.servers)
        return Process(*arguments, env={**env, "AWOKE_GROUP": self.group})

    def names_with(self, what: str) -> set[str]:
        """The members that have written such a line."""
        lines = [line.split() for line in whole_lines(self._log)]
        return {line[0] for line in lines if line[1] == what}

    def handled(self) -> int:
        """Returns the number of different messages that were handled."""
        lines = [line.split() for line in whole_lines(self._log)]
        batches = [line[2:] for line in lines if line[1] == "batch"]
        return len({(at, offset) for at, first, last in batches for offset in range(int(first), int(last) + 1)})

    def signal(self, number: signal.Signals) -> None:
        """Signal them all."""
        for process in self.processes:
            process.signal(number)


def fill(servers: str, topic: str, count: int) -> int:
    """Produce this many messages to each partition; how many that are."""
    for partition in range(PARTITIONS):
        judge.feed(servers, topic, [b"value"] * count, partition=partition)
    return count * PARTITIONS


def check_at_end(members: Members, written: int) -> None:
    """All that was written is handled, and then committed."""
    wait_until(lambda: members.handled() == written, "everything is handled", WITHIN_S)
    servers, group, topic = members.servers, members.group, members.topic
    assert judge.comes_to_end(servers, group, topic, WITHIN_S), judge.progress(servers, group, topic)


@pytest.mark.timeout(400)
def test_frozen_members_go_on_committing(real_cluster: RealCluster, tmp_path: Path) -> None:
    servers, topic, group = real_cluster.bootstrap_servers, unique("frozen"), unique("group")
    real_cluster.create_topic(topic, PARTITIONS)
    members = Members(servers, topic, group, tmp_path / "log")
    with contextlib.ExitStack() as stack:
        members.start(stack)
        written = fill(servers, topic, 10)
        wait_until(lambda: len(members.names_with("assigned")) == MEMBERS, "each member has a partition", WITHIN_S)
        for _ in range(ROUNDS):
            written += fill(servers, topic, BACKLOG)
            members.signal(signal.SIGSTOP)
            elapse(FROZEN_S, "some members are frozen for longer than their session")
            members.signal(signal.SIGCONT)
            check_at_end(members, written)
            written += fill(servers, topic, 10)
            check_at_end(members, written)
        assert members.names_with("lost"), "no member was frozen for longer than its session"
        members.signal(signal.SIGTERM)
        for process in members.processes:
            assert process.wait() == 0, process.output


@pytest.mark.timeout(200)
def test_a_topic_that_appears_while_a_member_joins_again_is_read(real_cluster: RealCluster, tmp_path: Path) -> None:
    servers, topic, group = real_cluster.bootstrap_servers, unique("frozen-pattern"), unique("group")
    real_cluster.create_topic(f"{topic}-a", 2)
    members = Members(servers, topic, group, tmp_path / "log", MEMBER_LOOKS="yes")
    with contextlib.ExitStack() as stack:
        members.start(stack, 2)
        first, second = members.processes
        wait_until(lambda: len(members.names_with("assigned")) == 2, "each member has a partition", WITHIN_S)
        first.signal(signal.SIGSTOP)
        elapse(FROZEN_S, "a member is frozen for longer than its session")
        # The group cannot let the first one in until the second one joins, too, or its session is over.
        second.signal(signal.SIGSTOP)
        real_cluster.create_topic(f"{topic}-b")
        judge.feed(servers, f"{topic}-b", [b"value"])
        first.signal(signal.SIGCONT)
        wait_until(lambda: "lost" in {line.split()[1] for line in whole_lines(tmp_path / "log")}, "lost", WITHIN_S)
        elapse(3.0, "the first member looks for topics while it joins")
        second.signal(signal.SIGCONT)
        assert judge.comes_to_end(servers, group, f"{topic}-b", WITHIN_S), "\n".join(
            each.output for each in members.processes
        )
        members.signal(signal.SIGTERM)
        for process in members.processes:
            assert process.wait() == 0, process.output
