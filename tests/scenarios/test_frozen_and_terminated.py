"""Members that were frozen hear the signal that comes with their thaw, and stop in order."""

from __future__ import annotations

import contextlib
import itertools
import signal
from pathlib import Path

import pytest

from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.waiting import elapse, wait_until

MEMBERS = 6
FROZEN_S = 9.0
SHUTDOWN_S = 30.0
"""The default of `shutdown_timeout_s`."""

ORDERS = [(signal.SIGCONT, signal.SIGTERM), (signal.SIGTERM, signal.SIGCONT)]


@pytest.mark.parametrize("order", ORDERS, ids=["cont-term", "term-cont"])
def test_a_frozen_member_stops_in_order_when_it_is_continued_and_terminated(
    real_cluster: RealCluster, tmp_path: Path, order: tuple[signal.Signals, signal.Signals]
) -> None:
    """The kernel may deliver TERM to any thread: the main thread must wake up nevertheless."""
    topic, log = unique("frozen"), tmp_path / "log"
    real_cluster.create_topic(topic, MEMBERS)
    env = {"MEMBER_LOG": str(log), "MEMBER_TOPIC": topic, "AWOKE_GROUP": topic}
    arguments = ("run", "tests.scenarios.member_app:app", "--bootstrap-servers", real_cluster.bootstrap_servers)
    with contextlib.ExitStack() as stack:
        names = [f"m{number}" for number in range(MEMBERS)]
        members = [stack.enter_context(Process(*arguments, env={**env, "MEMBER_NAME": name})) for name in names]
        wait_until_assigned(log, names)
        for member in members:
            member.signal(signal.SIGSTOP)
        elapse(FROZEN_S, "longer than the members' session")
        for member, number in itertools.product(members, order):
            member.signal(number)
        # Their main threads hear it whatever thread got it; each has all of its shutdown time.
        codes = [member.wait(SHUTDOWN_S + 5.0) for member in members]
        assert codes == [0] * MEMBERS, "\n".join(member.output for member in members)


def wait_until_assigned(log: Path, names: list[str], within_s: float = 90.0) -> None:
    """Waits until each member, another process, has written to the file that it has had a partition."""

    def are_assigned() -> bool:
        lines = [line.split() for line in whole_lines(log)]
        return {line[0] for line in lines if line[1] == "assigned"} == set(names)

    wait_until(are_assigned, f"each of {names} has had a partition", within_s, every_s=0.05)
