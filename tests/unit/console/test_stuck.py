"""Why an app is stuck: the reasons and their order, from view models alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from awoke.console.stuck import SLOW_MS, reasons
from awoke.console.views import (
    AppView,
    BlockedPartition,
    Failing,
    GroupPartition,
    GroupView,
    Handler,
    NodeView,
    OutputTopic,
    Partition,
    Reason,
    Report,
    Running,
    SharedGroup,
    UnownedPartitions,
)
from awoke.operate.commands.views import MAJOR

NOW_MS = 1_000_000_000


def node_of(*partitions: Partition, is_silent: bool = False, is_newer: bool = False, **fields: Any) -> NodeView:
    report = Report(
        **{
            "major": MAJOR,
            "minor": 0,
            "node": "host.1",
            "app": "shop",
            "host": "host",
            "pid": 1,
            "started_at_ms": 1,
            "at_ms": NOW_MS,
            "sequence": 1,
            "state": "running",
            "groups": ["shop"],
            **fields,
        },
        partitions=list(partitions),
    )
    document = msgspec.Raw(msgspec.json.encode(report))
    return NodeView(node="host.1", at_ms=NOW_MS, is_newer=is_newer, is_silent=is_silent, document=document)


def group_of(members: int = 1, lag: int = 5) -> GroupView:
    at = GroupPartition(topic="orders", partition=0, committed=0, end_offset=lag, lag=lag)
    return GroupView(group="shop", state="Stable", members=members, partitions=[at])


def partition(**fields: Any) -> Partition:
    return Partition(**{"group": "shop", "topic": "orders", "partition": 0, **fields})


def found(*nodes: NodeView, groups: tuple[GroupView, ...] = ()) -> list[Reason]:
    view = AppView(app="shop", at_ms=NOW_MS, nodes=list(nodes), groups=list(groups), errors=[])
    return reasons(view, {each.node: report for each in nodes if (report := each.report()) is not None})


def kinds(*nodes: NodeView, groups: tuple[GroupView, ...] = ()) -> list[str]:
    return [each.kind for each in found(*nodes, groups=groups)]


def at(partition: int = 0, group: str = "shop", **fields: Any) -> Partition:
    return Partition(group=group, topic="orders", partition=partition, **fields)


def failing(attempts: int, key_hash: str | None = "ab12") -> Failing:
    return Failing(
        offset=7, key_hash=key_hash, attempts=attempts, error="no good", since_ms=NOW_MS - 9_000, next_ms=NOW_MS + 4_000
    )


def running(for_ms: int) -> Running:
    return Running(offset=7, attempt=1, remaining=3, since_ms=NOW_MS - for_ms)


def test_an_app_that_works_has_no_reasons() -> None:
    assert found(node_of(at(running=[running(SLOW_MS)])), groups=(group_of(),)) == []


def test_what_stops_more_messages_comes_first() -> None:
    partitions = (
        at(0, running=[running(SLOW_MS + 1)]),
        at(1, failing=[failing(2)]),
        at(2, paused_because="exhausted"),
        at(3, stuck_because="no offset"),
    )
    node = node_of(*partitions, brokers_away_because="no broker connected", state="quiet")
    expected = ["brokers away", "no member", "stuck", "paused", "failing message", "slow job", "quiet"]
    assert kinds(node, groups=(group_of(members=0),)) == expected


def test_partitions_without_an_owner_are_a_reason() -> None:
    unowned = UnownedPartitions(group="shop", partitions=[("orders", 2), ("orders", 3)], total=2)
    (reason,) = found(node_of(at(), unowned=[unowned]))
    assert (reason.kind, reason.group, reason.topic, reason.partition) == ("no owner", "shop", "orders", 2)
    assert reason.text == "2 partitions have no owner in group shop, and nobody reads them: orders[2], orders[3]"


def test_a_partition_that_cannot_be_written_to_is_a_reason_instead_of_its_topic() -> None:
    at = BlockedPartition(topic="results", partition=3, messages=2, since_ms=NOW_MS - 12_000, text="it has no leader")
    topic = OutputTopic(topic="results", messages=2, since_ms=NOW_MS - 12_000)
    (reason,) = found(node_of(blocked=[at], outputs=[topic]))
    assert (reason.kind, reason.topic, reason.partition) == ("output", "results", 3)
    expected = "results[3] acknowledges nothing for 12 s, and 2 messages wait: it has no leader"
    assert reason.text == f"host.1: {expected}"


def test_a_group_with_members_of_another_app_is_a_reason() -> None:
    (reason,) = found(node_of(shared=[SharedGroup(group="shop", apps=["mailing"], topics=["letters"])]))
    assert (reason.kind, reason.group) == ("shared group", "shop")
    assert reason.text == "group shop has members of another app, which take a part of the messages: mailing"
    (reason,) = found(node_of(shared=[SharedGroup(group="shop", apps=[], topics=["letters"])]))
    assert reason.text == "members of group shop read topics that this app does not read: letters"
    assert reason.advice.startswith("if these are not another version of this app, give")


def test_a_message_with_more_attempts_comes_before_one_with_fewer() -> None:
    first, second = found(node_of(at(0, failing=[failing(1)]), at(1, failing=[failing(5)])))
    assert (first.partition, second.partition) == (1, 0)


def test_many_attempts_are_no_worse_than_a_pause() -> None:
    assert kinds(node_of(at(0, failing=[failing(1_000)]), at(1, paused_because="x"))) == ["paused", "failing message"]


def test_a_failing_message_is_named_with_its_key_its_next_attempt_and_the_command_that_skips_it() -> None:
    (reason,) = found(node_of(at(failing=[failing(2)])))
    assert "orders[0] offset 7 of key ab12 has failed 2 times" in reason.text
    assert "tried again in 4 s" in reason.text
    assert "awoke skip MODULE:APP orders 0 7`" in reason.advice


@pytest.mark.parametrize(("wait_ms", "text"), [(-5_000, "0 ms"), (3_571_000, "1 h"), (600_000, "10 min")])
def test_a_reason_tells_of_waits_in_units_that_fit(wait_ms: int, text: str) -> None:
    failing = Failing(offset=7, key_hash=None, attempts=1, error="no", since_ms=1, next_ms=NOW_MS + wait_ms)
    (reason,) = found(node_of(at(failing=[failing])))
    assert reason.text.endswith(f"it is tried again in {text}")
    (slow,) = found(node_of(at(running=[Running(offset=7, attempt=1, remaining=1, since_ms=NOW_MS - 7_200_000)])))
    assert slow.text.endswith("is at work for 2 h")


def test_the_command_names_a_group_that_is_not_the_apps_own() -> None:
    (reason,) = found(node_of(at(group="audit", paused_because="exhausted")))
    assert "--group audit" in reason.advice


def test_a_group_without_members_is_a_reason_where_messages_wait() -> None:
    assert kinds(groups=(group_of(members=0),)) == ["no member"]
    assert kinds(groups=(group_of(members=0, lag=0),)) == []


def test_nodes_that_are_silent_or_newer_are_left_out() -> None:
    paused = at(paused_because="exhausted")
    assert kinds(node_of(paused, is_silent=True), node_of(paused, is_newer=True)) == []


def test_an_open_transaction_is_a_reason_once_everything_before_it_is_done() -> None:
    at = partition(position=5, end_offset=9, last_stable_offset=5, transaction_open_since_ms=NOW_MS - 60_000)
    (reason,) = found(node_of(at))
    assert reason.kind == "open transaction"
    assert "at offset 5 that is open for 1 min, and 4 messages wait behind it" in reason.text
    assert kinds(node_of(msgspec.structs.replace(at, position=4))) == []
    assert kinds(node_of(msgspec.structs.replace(at, transaction_open_since_ms=NOW_MS - 1_000))) == []


def test_a_partition_with_as_many_messages_under_way_as_allowed_is_a_reason() -> None:
    at = partition(commit_gap=100, commit_gap_max=100, oldest_offset=5)
    assert kinds(node_of(at)) == ["full"]
    assert kinds(node_of(msgspec.structs.replace(at, commit_gap=99))) == []


def told_by_brokers(stable: int, since_ms: int | None, end: int = 9) -> GroupView:
    at = GroupPartition(topic="orders", partition=0, committed=3, end_offset=end, lag=end - 3)
    at.last_stable_offset, at.transaction_open_since_ms = stable, since_ms
    return GroupView(group="shop", state="Stable", members=1, partitions=[at])


def test_an_open_transaction_that_the_brokers_confirm_is_a_reason_after_two_seconds() -> None:
    node = node_of(partition(position=5, end_offset=5))
    (reason,) = found(node, groups=(told_by_brokers(5, NOW_MS - 2_000),))
    assert reason.kind == "open transaction"
    assert "at offset 5 that is open for 2 s, and 4 messages wait behind it" in reason.text
    assert kinds(node, groups=(told_by_brokers(5, NOW_MS - 1_999),)) == []
    assert kinds(node, groups=(told_by_brokers(5, None),)) == []
    seen = node_of(partition(position=5, last_stable_offset=5, end_offset=9, transaction_open_since_ms=NOW_MS - 2_000))
    assert kinds(seen, groups=(told_by_brokers(5, None),)) == ["open transaction"]


def test_a_transaction_that_has_ended_since_the_report_is_no_reason() -> None:
    node = node_of(partition(position=5, last_stable_offset=5, end_offset=9, transaction_open_since_ms=1))
    assert kinds(node) == ["open transaction"]
    assert kinds(node, groups=(told_by_brokers(9, None),)) == []
    unasked = told_by_brokers(9, None)
    unasked.partitions[0].last_stable_offset = None
    assert kinds(node, groups=(unasked,)) == ["open transaction"]
    unasked.partitions[0].committed = 9
    assert kinds(node, groups=(unasked,)) == []


def test_a_marker_before_an_open_transaction_is_no_message_that_is_not_done() -> None:
    read = partition(position=4, read_offset=5, end_offset=5)
    groups = (told_by_brokers(5, NOW_MS - 9_000),)
    assert kinds(node_of(read), groups=groups) == ["open transaction"]
    for busy in ({"running": [running(1)]}, {"in_flight": 1}, {"read_offset": 4}, {"read_offset": None}):
        assert kinds(node_of(msgspec.structs.replace(read, **busy)), groups=groups) == []


def late(unheard_ms: int, *partitions: Partition, node: str = "host.1", is_silent: bool = False) -> NodeView:
    found = node_of(*partitions, is_silent=is_silent, node=node)
    return msgspec.structs.replace(found, node=node, is_overdue=True, heard_ms=NOW_MS - unheard_ms)


def test_a_report_that_is_overdue_is_a_reason_until_others_have_its_partitions() -> None:
    (reason,) = found(late(13_000, at(0), at(1)))
    assert (reason.kind, reason.node) == ("no report", "host.1")
    assert reason.text == "host.1: no report for 13 s, expected every 10 s; 2 partitions of it wait"
    assert "it was killed, is frozen, or can't reach the brokers" in reason.advice
    others = msgspec.structs.replace(node_of(at(0), node="host.2"), node="host.2")
    (reason,) = found(late(40_000, at(0), at(1), is_silent=True), others)
    assert reason.text.endswith("; 1 partition of it waits")
    assert kinds(late(40_000, at(0), is_silent=True), others) == []
    assert kinds(late(13_000)) == ["no report"]
    assert kinds(late(40_000, is_silent=True)) == []
    assert kinds(late(3_600_001, at(1), is_silent=True)) == []


def handler(name: str, output: str | None = None, dead_letter: str | None = None) -> Handler:
    more: Any = {"is_async": False, "concurrency": 1, "exactly_once": False}
    return Handler(name=name, group="shop", topic="orders", output=output, dead_letter=dead_letter, **more)


def test_an_output_that_acknowledges_nothing_is_a_reason_with_its_functions() -> None:
    outputs = [OutputTopic(topic="out", messages=7, since_ms=NOW_MS - 12_000)]
    handlers = [handler("bill", "out"), handler("ship", "other", "out"), handler("log")]
    (reason,) = found(node_of(outputs=outputs, handlers=handlers))
    assert (reason.kind, reason.node) == ("output", "host.1")
    assert (
        reason.text == "host.1: topic out (of bill, ship): 7 messages wait for an acknowledgement, "
        "and none was acknowledged for 12 s"
    )
    assert "min.insync.replicas" in reason.advice
    (reason,) = found(node_of(outputs=outputs, queue_full_since_ms=NOW_MS - 5_000))
    assert reason.text.endswith("; the queue of the producer is full for 5 s, and functions that send wait for room")


def test_a_producer_without_room_is_a_reason_that_names_the_topic_with_the_most_messages() -> None:
    outputs = [
        OutputTopic(topic="out", messages=90, since_ms=None),
        OutputTopic(topic="other", messages=10, since_ms=None),
    ]
    (reason,) = found(node_of(outputs=outputs, queue_full_since_ms=NOW_MS - 5_000))
    assert reason.kind == "output"
    assert "full for 5 s" in reason.text
    assert reason.text.endswith("; most for topic out: 90 messages wait for an acknowledgement")
    assert kinds(node_of(queue_full_since_ms=NOW_MS)) == ["output"]
    assert kinds(node_of(outputs=outputs)) == []
