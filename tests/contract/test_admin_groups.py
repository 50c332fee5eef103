"""Groups and their offsets, on Kafka: listed, described, changed, reset and deleted; with members and without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import Cluster, unique
from tests.support.waiting import wait_until


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[awoke.Admin]:
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """A topic with two partitions of ten messages each, one a second, the first of each an hour ago."""
    name = unique("topic")
    cluster.create_topic(name, 2)
    first_ms = int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1_000)
    with awoke.Producer(cluster.bootstrap_servers, kafka=cluster.properties) as producer:
        handles = [
            producer.produce(name, b"%d" % number, partition=partition, timestamp_ms=first_ms + number * 1_000)
            for partition in range(2)
            for number in range(10)
        ]
        awoke.wait_all(handles, 30)
    return name


@contextmanager
def member(cluster: Cluster, group: str, topic: str, protocol: str = "classic") -> Iterator[None]:
    """A group with one member that has both partitions of a topic."""
    app = awoke.App(group, group=group, bootstrap_servers=cluster.bootstrap_servers, kafka={"group.protocol": protocol})

    @app.on(topic)
    def handle(message: awoke.Message[bytes]) -> None: ...

    with running(app), awoke.Admin(cluster.bootstrap_servers) as admin:

        def has_both() -> bool:
            try:
                members = admin.describe_group(group).members
            except awoke.UnknownGroup:
                return False
            return [each.partitions for each in members] == [[(topic, 0), (topic, 1)]]

        wait_until(has_both, "the member has its partitions")
        yield


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_described_with_its_members(protocol: str, cluster: Cluster, topic: str) -> None:
    group = unique("group")
    with member(cluster, group, topic, protocol), awoke.Admin(cluster.bootstrap_servers) as admin:
        found = admin.describe_group(group)
        assert (found.name, found.state, found.kind) == (group, "Stable", protocol)
        assert found.protocol == {"classic": "cooperative-sticky", "consumer": "uniform"}[protocol]
        assert found.coordinator == admin.brokers()[0]
        (one,) = found.members
        assert (one.host, one.static_id, one.partitions) == ("127.0.0.1", None, [(topic, 0), (topic, 1)])
        assert awoke.GroupListing(group, "Stable", protocol, is_simple=False) in admin.list_groups()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_left_alone(protocol: str, cluster: Cluster, topic: str) -> None:
    group = unique("group")
    with member(cluster, group, topic, protocol), awoke.Admin(cluster.bootstrap_servers) as admin:
        plan = admin.plan_reset(group, [topic], to="earliest")
        words = rf"group '{group}': it has 1 member \(.+ on 127.0.0.1\); stop them first"
        changes: list[Callable[[], None]] = [
            lambda: admin.reset_offsets(plan),
            lambda: admin.alter_group_offsets(group, {(topic, 0): 1}),
            lambda: admin.delete_group_offsets(group, [(topic, 0)]),
            lambda: admin.delete_group(group),
        ]
        for change in changes:
            with pytest.raises(awoke.GroupNotEmpty, match=words):
                change()
        assert admin.describe_group(group).state == "Stable"


def test_an_unknown_group_is_named(admin: awoke.Admin, topic: str) -> None:
    for ask in (
        lambda: admin.describe_group("nowhere"),
        lambda: admin.delete_group("nowhere"),
        lambda: admin.delete_group_offsets("nowhere", [(topic, 0)]),
    ):
        with pytest.raises(awoke.UnknownGroup, match=r"^group 'nowhere' does not exist"):
            ask()
    with pytest.raises(awoke.UnknownGroup, match="'nowhere' has no committed offsets: name the topics"):
        admin.plan_reset("nowhere", to="earliest")
    assert admin.group_offsets("nowhere") == {}


def test_offsets_are_committed_in_the_place_of_a_group_and_deleted(admin: awoke.Admin, topic: str) -> None:
    group = unique("group")
    admin.alter_group_offsets(group, {(topic, 0): 3, (topic, 1): 4})
    assert admin.group_offsets(group) == {(topic, 0): 3, (topic, 1): 4}
    assert awoke.GroupListing(group, "Empty", "classic", is_simple=True) in admin.list_groups()
    admin.delete_group_offsets(group, [(topic, 1)])
    assert admin.group_offsets(group) == {(topic, 0): 3}
    admin.delete_group(group)
    assert admin.group_offsets(group) == {}
    assert group not in {each.name for each in admin.list_groups()}


def test_offsets_of_what_does_not_exist_are_refused(admin: awoke.Admin, topic: str) -> None:
    group = unique("group")
    with pytest.raises(awoke.UnknownTopic, match=rf"{topic}\[9\]"):
        admin.alter_group_offsets(group, {(topic, 9): 0})
    with pytest.raises(awoke.ConfigError, match=r"offset -1 of .*: a committed offset must not be negative"):
        admin.alter_group_offsets(group, {(topic, 0): -1})
    assert admin.group_offsets(group) == {}


@pytest.mark.parametrize(
    ("to", "after", "is_clamped"),
    [
        ("earliest", 2, False),
        ("latest", 10, False),
        (5, 5, False),
        (0, 2, True),
        (99, 10, True),
        (awoke.Shift(-2), 4, False),
        (awoke.Shift(3), 9, False),
        (awoke.Shift(-9), 2, True),
        (awoke.Shift(9), 10, True),
    ],
)
def test_a_reset_is_planned_within_the_log_and_then_made(
    to: Any, after: int, is_clamped: bool, admin: awoke.Admin, topic: str
) -> None:
    group = unique("group")
    admin.delete_records(topic, {0: 2, 1: 2})
    admin.alter_group_offsets(group, {(topic, 0): 6, (topic, 1): 6})
    plan = admin.plan_reset(group, to=to)
    assert plan == [awoke.OffsetChange(group, topic, number, 6, after, 2, 10, is_clamped) for number in range(2)]
    assert admin.group_offsets(group) == {(topic, 0): 6, (topic, 1): 6}, "a plan changes nothing"
    admin.reset_offsets(plan)
    assert admin.group_offsets(group) == {(topic, 0): after, (topic, 1): after}


def test_a_reset_goes_to_a_time(admin: awoke.Admin, topic: str) -> None:
    group, now = unique("group"), datetime.now(UTC)
    admin.alter_group_offsets(group, {(topic, 0): 10})
    fifth = now - timedelta(hours=1) + timedelta(seconds=5)
    for moment, expected in ((fifth, range(4, 7)), (now, [10]), (datetime(1960, 1, 1, tzinfo=UTC), [0])):
        plan = admin.plan_reset(group, to=moment)
        assert {each.partition for each in plan} == {0, 1}
        assert {each.after for each in plan} <= set(expected)
    assert [each.before for each in plan] == [10, None]


def test_a_group_that_does_not_exist_yet_is_made_by_a_reset(cluster: Cluster, topic: str) -> None:
    group = unique("group")
    with awoke.Admin(cluster.bootstrap_servers) as admin:
        admin.reset_offsets(admin.plan_reset(group, [topic], to=7))
        assert admin.group_offsets(group) == {(topic, 0): 7, (topic, 1): 7}
        assert admin.plan_reset(group, [topic], to=awoke.Shift(1))[0].after == 8


def test_a_shift_leaves_out_partitions_without_an_offset(admin: awoke.Admin, topic: str) -> None:
    group = unique("group")
    admin.alter_group_offsets(group, {(topic, 1): 6})
    assert [(each.partition, each.after) for each in admin.plan_reset(group, to=awoke.Shift(-1))] == [(1, 5)]


def test_a_reset_of_an_unknown_topic_is_refused(admin: awoke.Admin) -> None:
    with pytest.raises(awoke.UnknownTopic, match="'nowhere' does not exist"):
        admin.plan_reset(unique("group"), ["nowhere"], to="latest")


async def test_an_event_loop_awaits_the_same_answers(cluster: Cluster, topic: str) -> None:
    group = unique("group")
    async with awoke.AsyncAdmin(cluster.bootstrap_servers) as admin:
        await admin.alter_group_offsets(group, {(topic, 0): 3})
        offsets, described, brokers, configs = await asyncio.gather(
            admin.group_offsets(group), admin.describe_group(group), admin.brokers(), admin.describe_configs(topic)
        )
        assert offsets == {(topic, 0): 3}
        assert (described.state, described.coordinator) == ("Empty", brokers[0])
        assert configs["cleanup.policy"].value == "delete"
        await admin.reset_offsets(await admin.plan_reset(group, to="latest"))
        assert await admin.group_offsets(group) == {(topic, 0): 10, (topic, 1): 10}
        await admin.create_partitions(topic, 3)
        assert len((await admin.describe_topic(topic)).partitions) == 3
        await admin.delete_group(group)
        with pytest.raises(awoke.UnknownGroup):
            await admin.describe_group(group)
        with pytest.raises(awoke.UnknownTopic):
            await admin.wait_for_topic("nowhere", 0.2)
    with pytest.raises(awoke.ClosedError):
        await admin.brokers()
