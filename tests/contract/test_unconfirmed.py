"""Messages that a broker refused while it took those behind them: librdkafka reports them as delivered.

A partition that has no message of the producer yet takes whichever batch comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import awoke
from awoke.testing import EmbeddedCluster, Faults, running
from tests.support.clusters import unique
from tests.support.waiting import Collected

COUNT = 8
REFUSED = "NOT_LEADER_OR_FOLLOWER"
"""The error of a leader that is just coming back."""
AT_ONCE: dict[str, str | int] = {"batch.num.messages": 1, "linger.ms": 0}
"""A request for each message, with five under way."""
ROUND_TRIP_MS = 20
"""Long enough that all requests are under way before the first answer."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        cluster.set_round_trip(1, ROUND_TRIP_MS)
        yield cluster


@pytest.fixture
def faults(brokers: EmbeddedCluster) -> Iterator[Faults]:
    with Faults(brokers, seed=1) as faults:
        yield faults


@pytest.fixture
def topic(brokers: EmbeddedCluster) -> Callable[[], str]:
    def create() -> str:
        name = unique("topic")
        brokers.create_topic(name)
        return name

    return create


def send(brokers: EmbeddedCluster, topic: str) -> None:
    with awoke.Producer(brokers.bootstrap_servers) as producer:
        sent = producer.produce_many(topic, [(b"%d" % number, b"%d" % number) for number in range(COUNT)])
        awoke.wait_all(sent, 30)


def read(brokers: EmbeddedCluster, topic: str) -> list[int]:
    with awoke.Reader(topic, bootstrap_servers=brokers.bootstrap_servers) as reader:
        return [int(message.value or b"") for message in reader.read_until_end(30)]


def run_until_committed(app: awoke.App, topic: str) -> None:
    """Runs the app until it has committed all messages."""
    committed: Collected[int] = Collected()

    def note(event: awoke.Event) -> None:
        for name, _, offset in event.fields["offsets"]:
            if name == topic:
                committed.add(offset)

    app.events.subscribe("offsets.committed", note)
    with running(app):
        committed.wait_until(lambda offsets: COUNT in offsets)


def test_a_handle_does_not_say_that_a_message_is_there_which_is_not(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[[], str]
) -> None:
    faults.refuse_produce(name := topic(), REFUSED)
    with awoke.Producer(brokers.bootstrap_servers, kafka=AT_ONCE) as producer:
        sent = producer.produce_many(name, [b"%d" % number for number in range(COUNT)])
        assert producer.flush(30)
        failed = [number for number, handle in enumerate(sent) if handle.exception() is not None]
        assert sorted(failed + read(brokers, name)) == list(range(COUNT))
        assert failed, "all were taken in order: the fault met none that was followed by another"
        with pytest.raises(awoke.DeliveryFailed, match="send it again") as refused:
            sent[failed[0]].wait(30)
        assert refused.value.is_retriable
        assert producer.produce(name, b"%d" % failed[0]).wait(30).offset >= 0


def test_a_message_that_asks_for_no_answer_needs_no_offset(brokers: EmbeddedCluster, topic: Callable[[], str]) -> None:
    with awoke.Producer(brokers.bootstrap_servers, kafka={"acks": 0}) as producer:
        assert producer.produce(topic(), b"careless").wait(30).offset == -1


def test_a_transaction_without_one_of_its_messages_is_aborted(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[[], str]
) -> None:
    name = topic()
    with awoke.Producer(brokers.bootstrap_servers, transactional_id=unique("id"), kafka=AT_ONCE) as producer:
        with producer.transaction() as transaction:  # The partition is part of a transaction, and has no message yet.
            transaction.produce(topic(), b"another")
        faults.refuse_produce(name, REFUSED)
        with pytest.raises(awoke.TransactionAborted), producer.transaction() as transaction:
            transaction.produce_many(name, [b"%d" % number for number in range(COUNT)])
        assert read(brokers, name) == []
        with producer.transaction() as transaction:
            transaction.produce_many(name, [b"%d" % number for number in range(COUNT)])
    assert read(brokers, name) == list(range(COUNT))


@pytest.mark.parametrize("kind", ["one job", "lanes", "ordered", "exactly once"])
def test_each_result_of_a_committed_message_is_there(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[[], str], kind: str
) -> None:
    name, out = topic(), topic()
    faults.refuse_produce(out, REFUSED)
    app = awoke.App(unique("app"), bootstrap_servers=brokers.bootstrap_servers, kafka=AT_ONCE)
    lanes = awoke.by_key(COUNT) if kind in ("lanes", "ordered") else awoke.by_partition()
    app.on(name, output=out, concurrency=lanes, ordered=kind == "ordered", exactly_once=kind == "exactly once")(
        lambda message: message.value
    )
    send(brokers, name)
    run_until_committed(app, name)
    assert set(read(brokers, out)) == set(range(COUNT))


def test_each_dead_letter_of_a_committed_message_is_there(
    brokers: EmbeddedCluster, faults: Faults, topic: Callable[[], str]
) -> None:
    name, letters = topic(), topic()
    faults.refuse_produce(letters, REFUSED)
    app = awoke.App(unique("app"), bootstrap_servers=brokers.bootstrap_servers)

    @app.on(name, dead_letter=letters, retry=awoke.Retry(attempts=1), concurrency=awoke.by_key(COUNT))
    def fail(message: awoke.Message[bytes]) -> None:
        raise ValueError(message.value)

    send(brokers, name)
    run_until_committed(app, name)
    assert sorted(read(brokers, letters)) == list(range(COUNT))
