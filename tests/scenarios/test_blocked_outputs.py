"""A partition that cannot be written to is an event and bad health within seconds, and well again when it can."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster, Faults, running
from tests.support.clusters import unique
from tests.support.kafka_cluster import ThreeBrokers
from tests.support.waiting import WITHIN_S, Collected

FOUND_WITHIN_S = 40.0
"""It takes up to 20 s on a machine that has time."""
SOON = awoke.Retry(attempts=1, backoff_s=(0.01, 0.02))


class Told:
    """The events of an app about its outputs."""

    def __init__(self, app: awoke.App) -> None:
        self.blocked, self.unblocked = Collected[awoke.Event](), Collected[awoke.Event]()
        app.events.subscribe("output.blocked", self.blocked.add)
        app.events.subscribe("output.unblocked", self.unblocked.add)

    def wait_blocked(self, *topics: str) -> dict[str, awoke.Event]:
        """Waits until each of the topics, and no other, was told; returns the first event of each."""
        expected = set(topics)
        events = self.blocked.wait_until(
            lambda found: {each.fields["topic"] for each in found} >= expected, FOUND_WITHIN_S
        )
        assert {each.fields["topic"] for each in events} == expected
        return {each.fields["topic"]: each for each in reversed(events)}

    def wait_unblocked(self, *topics: str) -> None:
        """Waits until each of the topics is told to be well."""
        self.unblocked.wait_until(lambda found: {each.fields["topic"] for each in found} >= set(topics), FOUND_WITHIN_S)


@pytest.fixture
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as cluster:
        yield cluster


def topics_of(brokers: EmbeddedCluster, count: int, partitions: int) -> list[str]:
    """Makes topics. The first broker leads their first partition, the second one their second."""
    topics = [unique("topic") for _ in range(count)]
    for topic in topics:
        brokers.create_topic(topic, partitions)
    return topics


def key_of_second_partition(brokers: EmbeddedCluster) -> bytes:
    """Returns a key whose messages go to the second of two partitions."""
    (topic,) = topics_of(brokers, 1, 2)
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        for number in range(20):
            if producer.produce(topic, b"", key=b"%d" % number).wait(WITHIN_S).partition == 1:
                return b"%d" % number
    raise AssertionError("all keys go to one partition")


@pytest.mark.timeout(180)
def test_whatever_an_app_sends_is_told_while_the_leader_is_away(brokers: EmbeddedCluster) -> None:
    sources, key = topics_of(brokers, 2, 1), key_of_second_partition(brokers)
    output, dead, by_hand = outputs = topics_of(brokers, 3, 2)
    app = awoke.App(unique("app"), bootstrap_servers=brokers.bootstrap_servers)
    told = Told(app)

    @app.on(sources[0], output=output)
    def copy(message: awoke.Message[bytes]) -> bytes:
        return message.value

    @app.on(sources[1], dead_letter=dead, retry=SOON)
    def fail(message: awoke.Message[bytes]) -> None:
        raise ValueError("no good")

    with Faults(brokers, seed=1) as faults, running(app) as runner:
        for source in sources:  # All connections are open, and each route has worked.
            app.producer.produce(source, b"before", key=key).wait(WITHIN_S)
        app.producer.produce(by_hand, b"before", key=key).wait(WITHIN_S)
        for topic in outputs:
            wait_for_values(brokers, topic, 1)
        faults.broker_down(2)
        for source in sources:
            app.producer.produce(source, b"during", key=key).wait(WITHIN_S)
        pending = app.producer.produce(by_hand, b"during", key=key)
        events = told.wait_blocked(*outputs)
        for topic in outputs:
            fields = events[topic].fields
            assert (fields["partition"], fields["messages"]) == (1, 1)
            assert 10.0 <= fields["for_s"] < FOUND_WITHIN_S
            assert fields["text"] == "it has no leader"
            (reason,) = (each for each in runner.health().reasons if topic in each)
            assert reason.startswith(f"{topic}[1] acknowledges nothing for "), reason
        faults.broker_up(2)
        pending.wait(WITHIN_S)
        told.wait_unblocked(*outputs)
        assert runner.health().is_healthy, runner.health().reasons
        for topic in outputs:
            wait_for_values(brokers, topic, 2)


def wait_for_values(brokers: EmbeddedCluster, topic: str, count: int) -> None:
    """Waits until a topic holds that many messages."""
    with awoke.Reader(topic, bootstrap_servers=brokers.bootstrap_servers) as reader:
        found = list(itertools.islice(reader, count))
    assert len(found) == count


@pytest.mark.timeout(300)
def test_it_is_told_of_transactions_and_on_real_brokers() -> None:
    source, by_hand, transacted = (unique("blocked") for _ in range(3))
    outputs = (by_hand, transacted)
    brokers = ThreeBrokers()
    with brokers:
        brokers.create_topic(source, [[1]], {})
        for topic in outputs:
            brokers.create_topic(topic, [[1], [3]], {})
        app = awoke.App(unique("app"), bootstrap_servers=brokers.servers_of(1, 2))
        told = Told(app)

        @app.on(source, output=transacted, exactly_once=True)
        def copy(message: awoke.Message[bytes]) -> awoke.Record:
            return awoke.Record(message.value, partition=1)

        with running(app) as runner:
            brokers.stop_broker(3)
            pending = [app.producer.produce(by_hand, b"value", partition=1) for _ in range(3)]
            app.producer.produce(source, b"value").wait(WITHIN_S)
            events = told.wait_blocked(*outputs)
            assert [events[topic].fields["messages"] for topic in outputs] == [3, 1]
            for topic in outputs:
                assert events[topic].fields["partition"] == 1
                assert events[topic].fields["text"] == "it has no leader"
                (reason,) = (each for each in runner.health().reasons if topic in each)
                assert f"{topic}[1] acknowledges nothing" in reason
            brokers.start_broker(3)
            awoke.wait_all(pending, FOUND_WITHIN_S)
            told.wait_unblocked(*outputs)
            assert runner.health().is_healthy, runner.health().reasons
