"""Two apps in one group by mistake: both are told, and an app beside another version of itself is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster, running
from tests.support.clusters import unique
from tests.support.waiting import Collected, wait_until

QUICK: dict[str, str | int] = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 100}
AT_ONCE = {**QUICK, "max.poll.interval.ms": 1_500}
"""An assignment counts as settled soon."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


class Member:
    """An app in a group, and what it is told of others there."""

    def __init__(self, brokers: EmbeddedCluster, name: str, group: str, *topics: str, **kafka: str | int) -> None:
        servers = brokers.bootstrap_servers
        self.app = awoke.App(name, bootstrap_servers=servers, group=group, kafka=kafka or QUICK)
        self.shared = Collected[awoke.Event]()
        self.app.events.subscribe("group.shared", self.shared.add)
        for topic in topics:
            self.app.on(topic)(lambda message: None)

    def wait_told(self) -> tuple[list[str], list[str]]:
        """Waits until it is told of others: their names, and their topics."""
        fields = self.shared.wait_for(1)[0].fields
        assert fields["group"] == self.app.load_settings().values.group
        return fields["apps"], fields["topics"]


@contextlib.contextmanager
def together(*members: Member) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for member in members:
            stack.enter_context(running(member.app))
        yield


def test_two_apps_that_read_one_topic_in_one_group_are_both_told(brokers: EmbeddedCluster) -> None:
    group, topic = unique("group"), unique("topic")
    brokers.create_topic(topic, 2)
    billing, mailing = Member(brokers, "billing", group, topic), Member(brokers, "mailing", group, topic)
    with together(billing, mailing):
        assert billing.wait_told() == (["mailing"], [])
        assert mailing.wait_told() == (["billing"], [])


def test_two_apps_of_one_name_that_read_other_topics_are_told_when_the_group_has_settled(
    brokers: EmbeddedCluster,
) -> None:
    group, topics = unique("group"), [unique("topic"), unique("topic")]
    for topic in topics:
        brokers.create_topic(topic, 1)
    members = [Member(brokers, "worker", group, topic, **AT_ONCE) for topic in topics]
    with together(*members):
        assert [member.wait_told() for member in members] == [([], [topics[1]]), ([], [topics[0]])]


def test_a_version_that_reads_one_more_topic_is_no_other_app_while_the_group_changes(brokers: EmbeddedCluster) -> None:
    group, topics = unique("group"), [unique("topic"), unique("topic")]
    for topic in topics:
        brokers.create_topic(topic, 2)
    before, after = Member(brokers, "shop", group, topics[0]), Member(brokers, "shop", group, *topics)
    other = Member(brokers, "other", group, topics[0])
    with together(before, after):
        with together(other):  # Its event shows that the comparison has been made.
            other.wait_told()
        for member in (before, after):
            assert all(not event.fields["topics"] for event in member.shared.items)


def test_an_app_is_alone_again_when_the_other_one_has_ended(brokers: EmbeddedCluster) -> None:
    group, topic = unique("group"), unique("topic")
    brokers.create_topic(topic, 2)
    billing, mailing = Member(brokers, "billing", group, topic), Member(brokers, "mailing", group, topic)
    with running(billing.app) as runner:
        with together(mailing):
            billing.wait_told()
            assert [each.strangers() for each in runner.groups] == [(["mailing"], [])]
        wait_until(lambda: [each.strangers() for each in runner.groups] == [([], [])], "nobody else is there")


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_it_is_told_in_groups_that_the_coordinator_divides(brokers: EmbeddedCluster) -> None:
    """The session of such a group is the brokers' setting, and the default of 45 s is waited for."""
    group, topic = unique("group"), unique("topic")
    brokers.create_topic(topic, 2)
    protocol: dict[str, str | int] = {"group.protocol": "consumer"}
    members = [Member(brokers, name, group, topic, **protocol) for name in ("billing", "mailing")]
    with together(*members):
        events = [member.shared.wait_for(1, 100.0)[0] for member in members]
        assert [event.fields["apps"] for event in events] == [["mailing"], ["billing"]]
