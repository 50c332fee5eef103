"""The reasons why an app is unhealthy: each names its place, and what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.declare.routing import Route
from awoke.observe.events import OutputBlocked, OutputUnblocked
from awoke.observe.partitions import CommitGap, PartitionState
from awoke.runtime.extension import Extension
from awoke.runtime.failures.failures import Failures
from awoke.runtime.watch.health import BlockedOutputs, reasons
from awoke.settings import Settings
from tests.unit.runtime.fakes import FakeJob, FakePartition

ERROR = ValueError("no good")


def handle(message: Any) -> None: ...


class Watched:
    """A running app with one group, without a fault, and with these parts instead of its own.

    It stands for the group, too.
    """

    def __init__(self, **parts: Any) -> None:
        self.groups: list[Any] = [self]
        self.group, self.is_own = "shop", True
        self.settings, self.failures = Settings(blocked_after_s=0.0), Failures()
        self.routes = {"orders": Route("orders", handle, {"concurrency": awoke.by_key(commit_gap=64, in_flight=64)})}
        self.member: Any = None
        self.fatal_error: BaseException | None = None
        self.refusals: Any = SimpleNamespace(reasons=list)
        self.extensions: list[Extension] = []
        self.blocked_outputs = BlockedOutputs()
        self.paused: dict[tuple[str, int], tuple[Any, BaseException]] = {}
        self.states: list[PartitionState] = []
        self.stuck_places: list[tuple[str, int, str, bool]] = []
        self.unowned_places: list[tuple[str, int]] = []
        vars(self).update(parts)

    def stuck(self) -> list[tuple[str, int, str, bool]]:
        return self.stuck_places

    def unowned(self) -> list[tuple[str, int]]:
        return self.unowned_places

    def partitions(self) -> list[PartitionState]:
        return self.states

    def fail(self, offset: int) -> None:
        """Has a message of `orders[0]` fail."""
        job = FakeJob(10, is_of_lanes=True)
        job.remaining = 10 - offset
        self.failures.failed(cast(Job, job), ERROR, 30.0)

    def reason(self) -> str:
        (reason,) = reasons(self)
        return reason


def test_an_app_without_a_fault_is_healthy() -> None:
    assert list(reasons(Watched())) == []


def test_an_app_with_a_fatal_error_says_why() -> None:
    assert Watched(fatal_error=ERROR).reason() == "fatal error: no good"


def test_denied_permissions_are_reasons() -> None:
    assert Watched(refusals=SimpleNamespace(reasons=lambda: ["not allowed"])).reason() == "not allowed"


def test_extensions_give_reasons() -> None:
    class Failing(Extension):
        def reasons(self) -> list[str]:
            return ["the disk is full"]

    assert Watched(extensions=[Extension(), Failing()]).reason() == "the disk is full"


def blocked(topic: str = "results", partition: int = 3, for_s: float = 12.0) -> OutputBlocked:
    text = "it has no leader"
    return OutputBlocked(client="awoke", topic=topic, partition=partition, messages=2, for_s=for_s, text=text)


def unblocked(topic: str = "results", partition: int = 3) -> OutputUnblocked:
    return OutputUnblocked(client="awoke", topic=topic, partition=partition, text="a message was acknowledged")


def test_a_partition_that_cannot_be_written_to_is_a_reason_until_all_producers_can() -> None:
    outputs = BlockedOutputs()
    outputs.on_blocked(blocked())
    outputs.on_blocked(blocked())
    reason = Watched(blocked_outputs=outputs).reason()
    assert reason == "results[3] acknowledges nothing for 12 s, and 2 messages wait: it has no leader"
    outputs.on_unblocked(unblocked())
    assert len(outputs.all()) == 1
    outputs.on_unblocked(unblocked())
    outputs.on_unblocked(unblocked())
    assert list(reasons(Watched(blocked_outputs=outputs))) == []


def test_the_output_that_is_blocked_for_longest_comes_first() -> None:
    outputs = BlockedOutputs()
    outputs.on_blocked(blocked("results"))
    outputs.on_blocked(blocked("others", -1, 30.0))
    first, _ = reasons(Watched(blocked_outputs=outputs))
    assert first.startswith("topic others acknowledges nothing for 30 s")


def test_a_paused_partition_is_named_with_the_command_that_resumes_it() -> None:
    reason = Watched(paused={("orders", 3): (FakePartition(), ERROR)}).reason()
    assert reason.startswith("orders[3] is paused: no good; `awoke resume MODULE:APP orders 3`")


def test_a_pause_that_a_rebalance_has_ended_is_no_reason() -> None:
    partition = FakePartition()
    partition.is_current = False
    assert list(reasons(Watched(paused={("orders", 3): (partition, ERROR)}))) == []


def test_partitions_without_an_owner_are_named() -> None:
    assert Watched(unowned_places=[("orders", 4)]).reason() == (
        "1 partition has no owner in group shop, and nobody reads it: orders[4]; restart a member if it stays so"
    )
    reason = Watched(unowned_places=[("orders", each) for each in range(12)]).reason()
    assert reason.startswith("12 partitions have no owner in group shop, and nobody reads them: orders[0], orders[1], ")
    assert "orders[9], …; restart" in reason


@pytest.mark.parametrize(
    ("place", "found", "what_next"),
    [
        (("orders", 3, "no offset", True), "orders[3] gives no messages", "`awoke resume MODULE:APP orders 3`"),
        (("orders", -1, "no topic", False), "topic orders gives no messages", "goes on by itself when that is mended"),
    ],
)
def test_a_stuck_partition_or_topic_is_named_with_what_helps(place: Any, found: str, what_next: str) -> None:
    reason = Watched(stuck_places=[place]).reason()
    assert reason.startswith(found)
    assert what_next in reason


def test_a_blocked_partition_is_named_once_with_its_oldest_failure() -> None:
    app = Watched()
    for offset in (4, 2):
        app.fail(offset)
    reason = app.reason()
    assert reason.startswith("orders[0] is blocked: offset 4 ")
    assert reason.endswith(", and 1 more; `awoke skip MODULE:APP orders 0 4` goes on without it")


def test_a_partition_that_is_paused_is_not_named_twice() -> None:
    app = Watched(paused={("orders", 0): (FakePartition(), ERROR)})
    app.fail(0)
    assert "is paused" in app.reason()


def test_a_failure_is_no_reason_before_it_has_lasted() -> None:
    app = Watched(settings=Settings(blocked_after_s=600.0))
    app.fail(0)
    assert list(reasons(app)) == []


@pytest.mark.parametrize(
    ("topic", "gap", "is_full"),
    [
        ("orders", CommitGap(64, 3, 7, 90.0), True),
        ("orders", CommitGap(63, 3, 7, 90.0), False),
        ("orders", None, False),
        ("shop.rpc.calls", CommitGap(100_000, 3, 7, 90.0), False),
    ],
)
def test_a_partition_that_takes_in_no_more_is_named_with_its_oldest_message(
    topic: str, gap: CommitGap | None, is_full: bool
) -> None:
    app = Watched(states=[PartitionState(topic, 0, 7, 7, 7, 99, gap)])
    text = "orders[0] takes in no more: offset 7 is not done after 1.5 min, with 64 messages behind it"
    assert list(reasons(app)) == ([text] if is_full else [])


@pytest.mark.parametrize(("fatal", "count"), [((82, "FENCED_INSTANCE_ID", "fenced"), 1), (None, 0)])
def test_a_group_member_that_can_not_go_on_says_why(fatal: Any, count: int) -> None:
    found = list(reasons(Watched(member=SimpleNamespace(fatal_error=lambda: fatal))))
    assert found == ["the member of group shop can't go on: fenced (FENCED_INSTANCE_ID)"] * count


def audit_group(**parts: Any) -> Watched:
    """Returns a second group of an app."""
    return Watched(group="audit", is_own=False, **parts)


def test_a_reason_of_another_group_names_it() -> None:
    gap = CommitGap(64, 3, 7, 90.0)
    group = audit_group(
        paused={("orders", 3): (FakePartition(), ERROR)},
        stuck_places=[("orders", 4, "no offset", True)],
        states=[PartitionState("orders", 5, 7, 7, 7, 99, gap)],
    )
    group.fail(0)
    found = list(reasons(Watched(groups=[Watched(), group])))
    places = [reason.split(" of group audit ")[0] for reason in found]
    assert places == ["orders[3]", "orders[4]", "orders[0]", "orders[5]"]
    assert "`awoke resume MODULE:APP orders 3 --group audit`" in found[0]
    assert "`awoke skip MODULE:APP orders 0 0 --group audit`" in found[2]


def test_the_reasons_of_all_groups_are_told() -> None:
    own, audit = Watched(refusals=SimpleNamespace(reasons=lambda: ["not allowed"])), audit_group()
    audit.paused[("orders", 3)] = (cast(Any, FakePartition()), ERROR)
    found = list(reasons(Watched(groups=[own, audit])))
    assert found[0] == "not allowed"
    assert found[1].startswith("orders[3] of group audit is paused: no good")
