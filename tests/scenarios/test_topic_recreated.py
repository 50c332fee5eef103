"""A topic is deleted and made again, with readers or without: all that the new one holds is processed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import awoke
from awoke.testing import running
from tests.support import judge
from tests.support.clusters import RealCluster, unique
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.subjects import KINDS, Subject, new_subject, reading
from tests.support.waiting import Collected, became, elapse, wait_until

MESSAGES = (50, 50, 80)
"""In each of the topics that follow one another under the one name."""
WITHIN_S = 45.0


def recreate(servers: str, topic: str) -> None:
    """Delete a topic and make it again at once, as a foreign tool does."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)

    def is_made() -> bool:
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        except confluent_kafka.KafkaException:
            return False  # The broker has not forgotten the old one yet.
        return True

    assert became(is_made, 30, every_s=0.02)


def values_of(incarnation: int) -> list[bytes]:
    """The values of one of the topics."""
    return [b"%d-%d" % (incarnation, number) for number in range(MESSAGES[incarnation])]


def check(servers: str, subject: Subject, incarnation: int) -> None:
    """Waits until one topic's messages have been processed and its end is committed."""
    values = values_of(incarnation)
    became(lambda: subject.is_done(servers, set(values)), WITHIN_S)
    assert judge.values_of(servers, subject.topic) == values, "the topic holds what was written to it"
    missing = set(values) - set(subject.handled.items)
    assert not missing, f"{len(missing)} of {len(values)} messages of topic {incarnation} were not processed"
    assert not subject.group or judge.progress(servers, subject.group, subject.topic)[0].lag == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_new_topic_holds_is_processed(real_cluster: RealCluster, kind: str) -> None:
    servers, topic, output = real_cluster.bootstrap_servers, unique("recreated"), unique("recreated-output")
    for name in (topic, output):
        real_cluster.create_topic(name)
    subject = new_subject(kind, topic, output)
    with reading(subject, servers):
        judge.feed(servers, topic, values_of(0))
        check(servers, subject, 0)
        for incarnation in range(1, len(MESSAGES)):
            recreate(servers, topic)
            judge.feed(servers, topic, values_of(incarnation))
            check(servers, subject, incarnation)
    if kind == "exactly_once":
        expected = [value for incarnation in range(len(MESSAGES)) for value in values_of(incarnation)]
        assert judge.values_of(servers, output, "read_committed") == expected
    if kind != "reader":
        check_events(subject)
        check_later_member(servers, subject)


def check_later_member(servers: str, subject: Subject) -> None:
    """A later member takes the commit as one of the present topic, and goes on behind it."""
    before = len(subject.handled.items)
    judge.feed(servers, subject.topic, [b"last"])
    with reading(subject, servers):
        subject.handled.wait_until(lambda values: b"last" in values, WITHIN_S)
    assert subject.handled.items[before:] == [b"last"]


def check_events(subject: Subject) -> None:
    """An event tells where the log began anew, unless the group took the partition back while there was no topic."""
    rewinds = [event.fields for event in subject.rewinds.items]
    assert all((each["topic"], each["partition"]) == (subject.topic, 0) for each in rewinds)
    places = [(each["from_offset"], each["to_offset"]) for each in rewinds]
    assert set(places) <= {(count, 0) for count in MESSAGES[:-1]}
    assert len(places) < len(MESSAGES)
    assert all(each["reason"] for each in rewinds)


FORMER = [b"former-%d" % number for number in range(100)]
"""In the topic that is read, and whose end is committed."""
EPOCHS = ([b"first-%d" % number for number in range(60)], [b"second-%d" % number for number in range(20)])
"""In the new topic, before and after a change of its leader."""


class Absence:
    """While no subject reads, a topic is made again, and its leader changes."""

    def __init__(self) -> None:
        self.brokers = ThreeBrokers()
        self.topic, self.output = unique("absence"), unique("absence-output")
        self.subjects = {kind: new_subject(kind, self.topic, self.output) for kind in KINDS if kind != "reader"}

    def run(self) -> None:
        """Read the first topic, change everything, and read until all are done or the time is up."""
        servers = self.brokers.bootstrap_servers
        self.brokers.create_topic(self.topic, [[2, 3]], {})
        self.brokers.create_topic(self.output, [[1]], {})
        judge.feed(servers, self.topic, FORMER)
        with self._reading():
            assert became(lambda: self._are_done(FORMER), WITHIN_S), "not all of the first topic was processed"
        admin = AdminClient({"bootstrap.servers": self.brokers.servers_of(1), "log_level": 0})
        committed = [self._committed(admin, subject.group) for subject in self.subjects.values()]
        admin.delete_topics([self.topic], operation_timeout=30)[self.topic].result(30)
        wait_until(lambda: self.topic not in admin.list_topics(timeout=30).topics, "the topic is gone", WITHIN_S)
        self.brokers.create_topic(self.topic, [[2, 3]], {})
        self.brokers.wait_in_sync(self.topic, 0, 2)
        judge.feed(servers, self.topic, EPOCHS[0])
        self.brokers.wait_in_sync(self.topic, 0, 2)
        self.brokers.stop_broker(2)
        self.brokers.wait_for_leader(self.topic, 0, 3)
        judge.feed(servers, self.topic, EPOCHS[1])
        for (
            offsets
        ) in committed:  # A broker that was away meanwhile has kept them; the others forget those of old topics.
            (done,) = admin.alter_consumer_group_offsets([offsets]).values()
            done.result(30)
        with self._reading():
            became(lambda: self._are_done([*EPOCHS[0], *EPOCHS[1]]), WITHIN_S)

    def _committed(self, admin: AdminClient, group: str) -> ConsumerGroupTopicPartitions:
        """Returns what a group has committed, with the leader epoch and the text beside it."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(self.topic, 0)])
        (answer,) = admin.list_consumer_group_offsets([asked]).values()
        found: ConsumerGroupTopicPartitions = answer.result(30)
        return found

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for subject in self.subjects.values():
                stack.enter_context(reading(subject, self.brokers.bootstrap_servers))
            yield

    def _are_done(self, values: list[bytes]) -> bool:
        servers = self.brokers.bootstrap_servers
        return all(subject.is_done(servers, set(values)) for subject in self.subjects.values())


def test_what_a_job_commits_after_its_topic_was_made_again_counts_for_the_old_one(real_cluster: RealCluster) -> None:
    """Another member joins, and the revocation waits for the job. Meanwhile the member learns of the new topic."""
    servers, topic, group = real_cluster.bootstrap_servers, unique("recreated"), unique("group")
    real_cluster.create_topic(topic)
    old, new, seen, may_end = values_of(0)[:5], values_of(1), Collected[bytes](), threading.Event()
    judge.feed(servers, topic, old)

    def member() -> awoke.App:
        kafka: dict[str, str | int] = {"partition.assignment.strategy": "range"}
        kafka["topic.metadata.refresh.interval.ms"] = 200
        app = awoke.App(unique("app"), group=group, bootstrap_servers=servers, kafka=kafka)

        @app.on(topic)
        def handle(message: awoke.Message[bytes]) -> None:
            seen.add(message.value)
            if message.value == old[-1]:
                may_end.wait(WITHIN_S)

        return app

    with running(member()):
        seen.wait_for(len(old))
        with running(member()):
            wait_until(lambda: judge.is_rebalancing(servers, group), "the group waits for the job")
            recreate(servers, topic)
            judge.feed(servers, topic, new)
            elapse(2.0, "the member learns of the new topic")
            may_end.set()
            seen.wait_until(lambda values: new[-1] in values, WITHIN_S)
    assert seen.items[len(old) :] == new


@pytest.fixture(scope="module")
def absence() -> Iterator[Absence]:
    """The absence, over; its brokers are gone with the last test."""
    found = Absence()
    with found.brokers:
        found.run()
        yield found


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "reader"])
def test_a_topic_that_was_made_again_while_no_member_read_is_read_from_its_first_message(
    absence: Absence, kind: str
) -> None:
    subject = absence.subjects[kind]
    missing = {*EPOCHS[0], *EPOCHS[1]} - set(subject.handled.items)
    assert not missing, f"{len(missing)} messages of the new topic were not processed"
    (event,) = subject.rewinds.items
    assert (event.fields["from_offset"], event.fields["to_offset"]) == (len(FORMER), 0)
    assert "made again" in event.fields["reason"]
