"""Faults of embedded brokers: each happens when it is asked for, and no message is lost, repeated or out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster, Faults, running
from tests.support.clusters import unique
from tests.support.waiting import Collected

PROTOCOLS: dict[str, dict[str, str | int]] = {
    "cooperative": {"heartbeat.interval.ms": 50},
    "eager": {"heartbeat.interval.ms": 50, "partition.assignment.strategy": "range"},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def faults(brokers: EmbeddedCluster) -> Iterator[Faults]:
    with Faults(brokers, seed=1) as faults:
        yield faults


@pytest.fixture
def topic(brokers: EmbeddedCluster) -> Callable[..., str]:
    def create(partitions: int = 1) -> str:
        name = unique("topic")
        brokers.create_topic(name, partitions)
        return name

    return create


class Seen:
    """An app of one route, with the values that it saw and its events."""

    def __init__(self, brokers: EmbeddedCluster, topic: str, **kafka: str | int) -> None:
        self._servers, self._topic = brokers.bootstrap_servers, topic
        self.app = awoke.App(unique("app"), bootstrap_servers=self._servers, kafka=kafka or PROTOCOLS["cooperative"])
        self.events: Collected[str] = Collected()
        self.values: Collected[int] = Collected()
        self.app.events.subscribe("*", self._note)
        self.app.on(topic, value=int)(lambda message: self.values.add(message.value))

    def _note(self, event: awoke.Event) -> None:
        if event.fields.get("partitions") != []:
            self.events.add(event.name)

    def wait_for(self, event: str, count: int = 1) -> None:
        """Waits until there were this many events of a name that concern partitions, if they could."""
        self.events.wait_until(lambda names: list(names).count(event) >= count)

    def send(self, *values: int) -> None:
        with awoke.Producer(self._servers) as producer:
            awoke.wait_all([producer.produce(self._topic, value) for value in values], 30)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_partition_is_revoked_and_assigned_again(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str], protocol: str
) -> None:
    seen = Seen(brokers, name := topic(2), **PROTOCOLS[protocol])
    with running(seen.app):
        seen.send(1)
        seen.values.wait_for(1)
        fault = faults.revoke(seen.app, name, 0)
        assert fault.has_happened
        seen.wait_for("partitions.revoked")
        seen.wait_for("partitions.assigned", 2)
        seen.send(2, 3)
        assert seen.values.wait_for(3) in ([1, 2, 3], [1, 3, 2])
    assert "partitions.lost" not in seen.events.items


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_loses_its_partitions_and_joins_again(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str], protocol: str
) -> None:
    seen = Seen(brokers, name := topic(), **PROTOCOLS[protocol])
    with running(seen.app):
        seen.send(1)
        seen.values.wait_for(1)
        seen.wait_for("offsets.committed")
        faults.lose(seen.app, name)
        seen.wait_for("partitions.lost")
        seen.wait_for("partitions.assigned", 2)
        seen.send(2)
        assert seen.values.wait_for(2) == [1, 2]


def test_a_refused_batch_is_sent_again_in_order(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    seen = Seen(brokers, name := topic())
    refused = faults.refuse_produce(name, times=2)
    with running(seen.app):
        seen.send(*range(10))
        assert refused.has_happened
        assert seen.values.wait_for(10) == list(range(10))


def test_a_batch_that_is_refused_for_good_fails_its_delivery(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    faults.refuse_produce(name := topic(), error="INVALID_RECORD")
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        with pytest.raises(awoke.DeliveryFailed) as raised:
            producer.produce(name, b"value").wait(30)
        assert raised.value.code_name == "INVALID_RECORD"
        assert producer.produce(name, b"value").wait(30).offset == 0


def test_a_batch_whose_acknowledgement_is_lost_is_written_once(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    lost = faults.lose_acknowledgement(name := topic())
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        assert producer.produce(name, b"value").wait(30).offset == 0
        assert lost.has_happened
        assert producer.produce(name, b"value").wait(30).offset == 1


def test_refused_fetches_lose_no_message(brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]) -> None:
    seen = Seen(brokers, name := topic())
    with running(seen.app):
        seen.send(1)
        seen.values.wait_for(1)
        faults.refuse_fetch(name, times=2).wait()
        seen.send(2)
        assert seen.values.wait_for(2) == [1, 2]


def test_a_refused_commit_is_made_again(brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]) -> None:
    seen = Seen(brokers, name := topic())
    refused = faults.refuse_commit(seen.app)
    with running(seen.app):
        seen.send(1, 2)
        seen.values.wait_for(2)
        refused.wait()
    with awoke.Admin(brokers.bootstrap_servers) as admin:
        assert admin.group_offsets(seen.app.name) == {(name, 0): 2}


def test_an_aborted_transaction_is_repeated_and_each_message_has_one_result(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    name, out = topic(), topic()
    app = awoke.App(unique("app"), bootstrap_servers=brokers.bootstrap_servers)
    app.on(name, output=out, exactly_once=True)(lambda message: message.value)
    aborted = faults.abort_transaction(app)
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        awoke.wait_all([producer.produce(name, b"%d" % number) for number in range(20)], 30)
    with running(app), awoke.Reader(out, bootstrap_servers=brokers.bootstrap_servers) as reader:
        results = [int(message.value or b"") for _, message in zip(range(20), reader, strict=False)]
        assert aborted.has_happened
    with awoke.Reader(out, bootstrap_servers=brokers.bootstrap_servers) as reader:
        assert [int(message.value or b"") for message in reader.read_until_end(30)] == results == list(range(20))


def test_a_producer_whose_transaction_is_aborted_is_fenced(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    name, identity = topic(), unique("id")
    with awoke.Producer(brokers.bootstrap_servers, transactional_id=identity) as producer:
        aborted = faults.abort_transaction(identity)
        with pytest.raises(awoke.ProducerFenced), producer.transaction() as transaction:
            transaction.produce(name, b"value")
        assert aborted.has_happened
    with awoke.Reader(name, bootstrap_servers=brokers.bootstrap_servers) as reader:
        assert list(reader.read_until_end(30)) == []


def test_messages_after_a_truncation_are_processed(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    seen = Seen(brokers, name := topic())
    with running(seen.app):
        for value in range(3):
            seen.send(value)
        seen.values.wait_for(3)
        faults.truncate(name, 0, 1)
        for value in (3, 4, 5):
            seen.send(value)
        assert seen.values.wait_for(6) == [0, 1, 2, 3, 4, 5]


def test_a_broker_goes_down_and_comes_up_again(topic: Callable[..., str]) -> None:
    with EmbeddedCluster() as own, Faults(own) as faults:
        own.create_topic("orders")
        seen = Seen(own, "orders", **{"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 10})
        with running(seen.app):
            seen.send(1)
            seen.values.wait_for(1)
            faults.broker_down()
            seen.wait_for("client.error")
            faults.broker_up()
            seen.send(2)
            assert seen.values.wait_for(2) == [1, 2]


def test_a_slow_broker_answers_later_inside_the_block(topic: Callable[..., str]) -> None:
    with EmbeddedCluster() as own, Faults(own) as faults, awoke.Producer(own.bootstrap_servers) as producer:
        own.create_topic("orders")
        producer.produce("orders", b"value").wait(30)
        with faults.slow(60_000):
            delivery = producer.produce("orders", b"value")
            with pytest.raises(awoke.DeliveryTimeout):
                delivery.wait(0.05)
            faults.broker_down()  # The answer is on its way for a minute; the connection that it would come by ends.
        faults.broker_up()
        assert delivery.wait(30).offset == 1


def test_a_script_of_faults_loses_no_message(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    seen = Seen(brokers, name := topic())
    script = faults.script(
        lambda: faults.revoke(seen.app, name),
        lambda: faults.lose(seen.app, name),
        lambda: faults.refuse_produce(name),
        lambda: faults.lose_acknowledgement(name),
        lambda: faults.refuse_fetch(name),
        count=6,
        every=(1, 5),
    )
    with running(seen.app):
        seen.send(0)
        seen.values.wait_for(1)
        with script:
            for value in range(1, 31):
                seen.send(value)
                script.count()
        seen.send(31)
        values = seen.values.wait_until(lambda values: 31 in values)
        seen.send(32)  # A fault that waits for the next request has happened by now.
        seen.values.wait_until(lambda values: 32 in values)
    assert list(dict.fromkeys(values)) == list(range(32))


def test_an_async_handler_sees_each_message_after_its_partition_was_revoked(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[..., str]
) -> None:
    name, values = topic(), Collected[bytes]()
    app = awoke.App(unique("app"), bootstrap_servers=brokers.bootstrap_servers, kafka=PROTOCOLS["cooperative"])

    @app.on(name)
    async def see(message: awoke.Message[bytes]) -> None:
        await asyncio.sleep(0)
        values.add(message.value)

    with running(app), awoke.Producer(brokers.bootstrap_servers) as producer:
        producer.produce(name, b"1").wait(30)
        values.wait_for(1)
        faults.revoke(app, name)
        producer.produce(name, b"2").wait(30)
        assert values.wait_for(2) == [b"1", b"2"]
