"""Every partition has an owner, whenever a static member ends; where one has none, it is told."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

import awoke
from awoke.testing import running
from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.line_files import whole_lines
from tests.support.processes import Process
from tests.support.swarms import Swarm, is_in_order
from tests.support.waiting import WITHIN_S, Collected, elapse, wait_until

PARTITIONS = 4
WORK_S = 2.0
"""A batch takes this time, and a revocation waits for it."""
SWARM_PARTITIONS = 12
REVOKE_TIMEOUT_S = 30.0
SESSION_S = 45.0
"""The defaults of `revoke_timeout_s` and `session.timeout.ms`."""


class Static:
    """Static members in processes of their own; a name may come back."""

    def __init__(self, stack: contextlib.ExitStack, servers: str, topic: str, log: Path) -> None:
        self._stack, self._servers, self._topic, self._log = stack, servers, topic, log

    def start(self, name: str, work_s: float = 0.02, strategy: str = "cooperative-sticky") -> Process:
        """Start the member of this name, which works as long on each batch."""
        arguments = ["run", "tests.scenarios.member_app:app", "--bootstrap-servers", self._servers]
        arguments += ["--kafka", f"group.instance.id={name}", "--kafka", f"partition.assignment.strategy={strategy}"]
        env = {"MEMBER_LOG": str(self._log), "MEMBER_NAME": name, "MEMBER_TOPIC": self._topic}
        env |= {"MEMBER_WORK_S": str(work_s), "AWOKE_GROUP": self._topic, "AWOKE_LOG_LEVEL": "debug"}
        return self._stack.enter_context(Process(*arguments, env=env))

    def count(self, name: str, what: str) -> int:
        """How many lines of a kind a member has written."""
        return sum(line.split()[:2] == [name, what] for line in whole_lines(self._log))


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_static_member_that_ends_between_two_rebalances_leaves_no_partition_unowned(
    real_cluster: RealCluster, tmp_path: Path, number: signal.Signals
) -> None:
    servers, topic = real_cluster.bootstrap_servers, unique("unowned")
    real_cluster.create_topic(topic, PARTITIONS)
    with contextlib.ExitStack() as stack:
        members = Static(stack, servers, topic, tmp_path / "log")
        for partition in range(PARTITIONS):
            judge.feed(servers, topic, [b"value"] * 50, partition=partition)
        stays = members.start("stays", WORK_S)
        wait_until(lambda: members.count("stays", "batch") > 0, "messages are handled", WITHIN_S)
        joins = members.start("joins")
        # It gets nothing in the first rebalance, in which the other one is asked to give up what it works on.
        assert joins.says("partitions=[]"), joins.output
        assert members.count("stays", "revoked") == 0, "the revocation waits for messages"
        stays.signal(number)
        code = stays.wait()
        assert code == (0 if number == signal.SIGTERM else -signal.SIGKILL), stays.output
        again = members.start("stays")
        assert again.says("app.started"), again.output
        for partition in range(PARTITIONS):
            judge.feed(servers, topic, [b"value"], partition=partition)
        is_done = judge.comes_to_end(servers, topic, topic, 60.0)
        assert is_done, f"{judge.progress(servers, topic, topic)}\n{joins.output}\n{again.output}"
        for process in (joins, again):
            process.signal(signal.SIGTERM)
            assert process.wait() == 0, process.output


def test_a_static_member_of_an_eager_group_that_ends_in_a_rebalance_waits_for_no_other_one(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    """One rebalance takes all partitions away and divides them."""
    servers, topic = real_cluster.bootstrap_servers, unique("eager")
    real_cluster.create_topic(topic, PARTITIONS)
    with contextlib.ExitStack() as stack:
        members = Static(stack, servers, topic, tmp_path / "log")
        for partition in range(PARTITIONS):
            judge.feed(servers, topic, [b"value"] * 50, partition=partition)
        stays = members.start("stays", WORK_S, "range")
        wait_until(lambda: members.count("stays", "batch") > 0, "messages are handled", WITHIN_S)
        joins = members.start("joins", strategy="range")
        wait_until(lambda: judge.is_rebalancing(servers, topic), "the revocation waits for messages", WITHIN_S)
        stays.signal(signal.SIGTERM)
        began_s = time.monotonic()
        assert stays.wait() == 0, stays.output
        assert time.monotonic() - began_s < REVOKE_TIMEOUT_S / 2, stays.output
        joins.signal(signal.SIGTERM)
        assert joins.wait() == 0, joins.output


@pytest.mark.timeout(300)
def test_nodes_that_are_replaced_while_a_swarm_grows_leave_no_partition_unowned(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    """A memory limit, a hang and a reload end nodes in the same way. All settings of the group are the defaults."""
    servers, topic = real_cluster.bootstrap_servers, unique("grows")
    real_cluster.create_topic(topic, SWARM_PARTITIONS)
    env = {"SWARM_WORK_S": str(WORK_S)}
    with Swarm(servers, topic, tmp_path, env=env, is_classic=False) as swarm:
        swarm.wait_up(assigned=SWARM_PARTITIONS)
        for partition in range(SWARM_PARTITIONS):
            judge.feed(servers, topic, [b"value"] * 8, partition=partition)
        swarm.wait_done(SWARM_PARTITIONS)
        swarm.ask("scale", nodes=3)
        elapse(0.7, "the group is in the first phase of its rebalance then")
        for node in (1, 2):
            swarm.kill(node, signal.SIGTERM)
        rest = judge.comes_to_own(servers, topic, [topic], SESSION_S)
        assert rest == set(), swarm.process.output
        swarm.wait_done(8 * SWARM_PARTITIONS)
        assert all(is_in_order(offsets) for offsets in swarm.done().values())
        assert swarm.stop() == 0


def test_partitions_that_no_member_owns_are_told_and_given_out(real_cluster: RealCluster) -> None:
    """librdkafka would learn of the new partitions after five minutes; until then no member owns them."""
    servers, topic = real_cluster.bootstrap_servers, unique("grown")
    real_cluster.create_topic(topic, 2)
    app = awoke.App(unique("app"), bootstrap_servers=servers, kafka={"session.timeout.ms": 6_000})
    events, assigned = Collected[awoke.Event](), Collected[tuple[str, int]]()
    app.events.subscribe("group.unowned", events.add)

    def note(event: awoke.Event) -> None:
        for at in event.fields["partitions"]:
            assigned.add(at)

    app.events.subscribe("partitions.assigned", note)

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None: ...

    with running(app) as runner:
        assigned.wait_for(2)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WITHIN_S)
        (event,) = events.wait_for(1, 60.0)
        assert event.fields["partitions"] == [(topic, 2), (topic, 3)]
        assert event.fields["group"] == app.name
        reasons = runner.health().reasons
        assert [each for each in reasons if "2 partitions have no owner" in each], reasons
        assigned.wait_until(lambda places: set(places) == {(topic, each) for each in range(4)})
        wait_until(lambda: not runner.health().reasons, "the next comparison finds an owner for each", 60.0)
