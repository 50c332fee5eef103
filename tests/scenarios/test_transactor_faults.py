"""Requests of an exactly-once app are cut off, lost or never answered: each message has one result all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import awoke
from awoke.testing import running
from tests.support.clusters import unique
from tests.support.kafka_proxy import Action, Direction, ProxiedCluster
from tests.support.waiting import Collected, elapse

KAFKA = {
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 200,
    "socket.timeout.ms": 1_000,
    "transaction.timeout.ms": 4_000,
}
MESSAGES = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[ProxiedCluster]:
    with ProxiedCluster() as cluster:
        yield cluster


@pytest.fixture
def topics(cluster: ProxiedCluster) -> tuple[str, str]:
    cluster.proxy.clear()
    names = unique("in"), unique("out")
    with awoke.Admin(cluster.direct_servers) as admin:
        for name in names:
            admin.create_topic(name, partitions=2, timeout_s=30)
    return names


def send(cluster: ProxiedCluster, topic: str, numbers: range) -> None:
    with awoke.Producer(cluster.direct_servers) as producer:
        awoke.wait_all([producer.produce(topic, b"%d" % number, key=b"%d" % (number % 20)) for number in numbers], 30)


def wait_for(cluster: ProxiedCluster, topic: str, count: int) -> None:
    with awoke.Reader(topic, bootstrap_servers=cluster.direct_servers) as reader:
        for number, _ in enumerate(reader, 1):
            if number == count:
                return


def copying_app(cluster: ProxiedCluster, topics: tuple[str, str], concurrency: awoke.Concurrency | None) -> awoke.App:
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, kafka=KAFKA)
    app.on(topics[0], output=topics[1], exactly_once=True, concurrency=concurrency)(lambda message: message.value)
    return app


def assert_each_once(cluster: ProxiedCluster, app: awoke.App, topics: tuple[str, str], count: int) -> None:
    with awoke.Reader(topics[1], bootstrap_servers=cluster.direct_servers) as reader:
        numbers = [int(message.value or b"") for message in reader.read_until_end(30)]
    assert sorted(numbers) == list(range(count))
    with awoke.Admin(cluster.direct_servers) as admin:
        assert sum(admin.group_offsets(app.name).values()) == count


@pytest.mark.parametrize(("action", "direction"), [("cut", "request"), ("cut_after", "request"), ("drop", "response")])
@pytest.mark.parametrize("api", ["Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
def test_each_message_has_one_result(
    cluster: ProxiedCluster, topics: tuple[str, str], api: str, action: Action, direction: Direction
) -> None:
    # Lanes where the place of the messages that are done is the most of what is committed.
    app = copying_app(cluster, topics, awoke.by_key(8) if api in ("TxnOffsetCommit", "EndTxn") else None)
    with running(app):
        send(cluster, topics[0], range(10))
        wait_for(cluster, topics[1], 10)
        rule = cluster.proxy.rule(api, action, direction)
        send(cluster, topics[0], range(10, MESSAGES))
        wait_for(cluster, topics[1], MESSAGES)
        rule.wait_happened(1)
    assert_each_once(cluster, app, topics, MESSAGES)


@pytest.mark.parametrize("direction", ["request", "response"])
def test_a_commit_in_doubt_is_looked_up(cluster: ProxiedCluster, topics: tuple[str, str], direction: Direction) -> None:
    """Lost requests were not committed, lost answers were: only the offsets tell which."""
    app, replaced = copying_app(cluster, topics, None), Collected[awoke.Event]()
    app.events.subscribe("producer.replaced", replaced.add)
    with running(app):
        send(cluster, topics[0], range(10))
        wait_for(cluster, topics[1], 10)
        rule = cluster.proxy.rule("EndTxn", "drop", direction, times=1_000)
        send(cluster, topics[0], range(10, 20))
        (event,) = replaced.wait_for(1)
        cluster.proxy.clear()
        assert "in doubt" in str(event.fields["reason"])
        send(cluster, topics[0], range(20, 30))
        wait_for(cluster, topics[1], 30)
        assert rule.fired >= 1
    assert_each_once(cluster, app, topics, 30)


@pytest.mark.soak
def test_a_job_is_not_tried_again_while_its_transaction_waits(cluster: ProxiedCluster, topics: tuple[str, str]) -> None:
    """For more than a minute no answer says what became of a commit; the handler has no second call meanwhile."""
    app = awoke.App(unique("app"), bootstrap_servers=cluster.bootstrap_servers, kafka=KAFKA)
    calls = Collected[bytes]()

    @app.on(topics[0], output=topics[1], exactly_once=True)
    def copy(message: awoke.Message[bytes]) -> bytes:
        if not calls.items:
            # Not before: a member asks for its offsets when it starts.
            for api in ("EndTxn", "OffsetFetch"):
                cluster.proxy.rule(api, "drop", "response", times=10_000)
        calls.add(message.value)
        if calls.items == [b"0", b"20"]:
            raise ValueError("the job ends with its first message")
        return message.value

    with awoke.Producer(cluster.direct_servers) as producer:
        awoke.wait_all([producer.produce(topics[0], value, key=b"same") for value in (b"0", b"20")], 30)
    with running(app):
        calls.wait_for(2)
        elapse(70, "a job that waits no longer than a minute is tried again")
        assert calls.items == [b"0", b"20"]
        cluster.proxy.clear()
        wait_for(cluster, topics[1], 2)
    with awoke.Reader(topics[1], bootstrap_servers=cluster.direct_servers) as reader:
        assert [message.value for message in reader.read_until_end(30)] == [b"0", b"20"]


def test_a_stop_is_bounded_when_nothing_answers(cluster: ProxiedCluster, topics: tuple[str, str]) -> None:
    app = copying_app(cluster, topics, None)
    with running(app) as server:
        send(cluster, topics[0], range(10))
        wait_for(cluster, topics[1], 10)
        rule = cluster.proxy.rule("EndTxn", "drop", "response", times=1_000)
        send(cluster, topics[0], range(10, 20))
        rule.wait_happened()
        server.stop(1.0)
    cluster.proxy.clear()
    app = awoke.App(app.name, bootstrap_servers=cluster.bootstrap_servers, kafka=KAFKA)
    app.on(topics[0], output=topics[1], exactly_once=True)(lambda message: message.value)
    with running(app):
        wait_for(cluster, topics[1], 20)
    assert_each_once(cluster, app, topics, 20)
