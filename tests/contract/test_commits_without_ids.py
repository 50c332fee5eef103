"""A commit without the id of its topic is of another log, if the log ends before it or in an earlier epoch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

import awoke
from awoke.testing import EmbeddedCluster, Faults, running
from tests.support.clusters import unique
from tests.support.waiting import Collected

FIRST, SECOND = 30, 5
"""The messages of the new log before and after a change of its leader."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


def commit(brokers: EmbeddedCluster, group: str, topic: str, offset: int, leader_epoch: int) -> None:
    """Commits as another program, which writes no text beside the offset."""
    consumer = Consumer({"bootstrap.servers": brokers.bootstrap_servers, "group.id": group, "log_level": 0})
    offsets = [TopicPartition(topic, 0, offset, leader_epoch=leader_epoch)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


class Reading:
    """An app that reads a log with a leader change, after a commit of another program."""

    def __init__(self, brokers: EmbeddedCluster, offset: int, leader_epoch: int, **options: object) -> None:
        group, self.topic = unique("group"), unique("topic")
        brokers.create_topic(self.topic, 1)
        with awoke.Producer(brokers.bootstrap_servers) as producer, Faults(brokers, seed=1) as faults:
            awoke.wait_all(producer.produce_many(self.topic, [b"%d" % number for number in range(FIRST)]), 30)
            faults.truncate(self.topic, 0, FIRST)  # Nothing is lost, and the log has its second epoch.
            rest = [b"%d" % number for number in range(FIRST, FIRST + SECOND)]
            awoke.wait_all(producer.produce_many(self.topic, rest), 30)
        commit(brokers, group, self.topic, offset, leader_epoch)
        self.app = awoke.App(unique("app"), bootstrap_servers=brokers.bootstrap_servers, group=group)
        self.offsets, self.rewinds = Collected[int](), Collected[awoke.Event]()
        self.app.events.subscribe("partition.rewound", self.rewinds.add)

        @self.app.on(self.topic, **options)  # type: ignore[arg-type]
        def handle(message: awoke.Message[bytes]) -> None:
            self.offsets.add(message.offset)

    def run_until_end(self) -> list[int]:
        """Reads up to the last message, and returns the offsets in the order in which they came first."""
        with running(self.app):
            return self.offsets.wait_until(lambda offsets: FIRST + SECOND - 1 in offsets)


LANES = {"concurrency": awoke.by_key(jobs=2)}


@pytest.mark.parametrize("options", [{}, LANES], ids=["in order", "lanes"])
def test_an_offset_beyond_the_end_of_the_log_begins_at_the_first_message(
    brokers: EmbeddedCluster, options: dict[str, object]
) -> None:
    reading = Reading(brokers, 1_000, 0, **options)
    assert set(reading.run_until_end()) == set(range(FIRST + SECOND))
    (event,) = reading.rewinds.items
    assert (event.fields["from_offset"], event.fields["to_offset"]) == (1_000, 0)
    assert "begins anew" in event.fields["reason"]


def test_an_offset_of_a_later_leader_epoch_is_of_another_log(brokers: EmbeddedCluster) -> None:
    reading = Reading(brokers, 20, 7)
    assert set(reading.run_until_end()) == set(range(FIRST + SECOND))
    assert len(reading.rewinds.items) == 1


def test_an_offset_within_the_log_is_where_reading_begins(brokers: EmbeddedCluster) -> None:
    reading = Reading(brokers, 20, 0)
    assert reading.run_until_end() == list(range(20, FIRST + SECOND))
    assert not reading.rewinds.items
