"""Timestamps of messages: what Kafka does not have is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import awoke
from awoke.testing import Runs
from tests.contract.test_consume import new_app, send
from tests.support.clusters import Cluster, read_all, unique
from tests.support.waiting import Collected

CreateTopic = Callable[..., str]
REFUSED = pytest.mark.parametrize("timestamp_ms", [0, -1, -(2**63)])


def stamped(message: awoke.Outgoing) -> awoke.Outgoing:
    """Middleware that changes nothing: messages go through Python first."""
    return message


@REFUSED
@pytest.mark.parametrize("middleware", [(), (stamped,)], ids=["plain", "middleware"])
def test_produce_refuses_it(
    cluster: Cluster, topic: CreateTopic, timestamp_ms: int, middleware: tuple[Callable[..., awoke.Outgoing], ...]
) -> None:
    name = topic()
    with awoke.Producer(cluster.bootstrap_servers, middleware=middleware) as producer:
        with pytest.raises(ValueError, match="timestamp_ms"):
            producer.produce(name, b"never", timestamp_ms=timestamp_ms)
        with pytest.raises(ValueError, match="timestamp_ms"):
            producer.produce_many(name, [awoke.Record(b"never", timestamp_ms=timestamp_ms)])
        producer.produce(name, b"first", timestamp_ms=1).wait(30)
    (message,) = read_all(cluster, name)
    assert (message.value, message.timestamp_ms) == (b"first", 1)


@REFUSED
def test_a_transaction_refuses_it(cluster: Cluster, timestamp_ms: int) -> None:
    name = unique("topic")
    cluster.create_topic(name)
    with (
        awoke.Producer(cluster.bootstrap_servers, transactional_id=unique("id")) as producer,
        producer.transaction() as transaction,
    ):
        with pytest.raises(ValueError, match="timestamp_ms"):
            transaction.produce(name, b"never", timestamp_ms=timestamp_ms)
        transaction.produce(name, b"first", timestamp_ms=1)


@REFUSED
def test_a_consumers_transaction_refuses_it(cluster: Cluster, timestamp_ms: int, awoke_run: Runs) -> None:
    name, output, refused = unique("in"), unique("out"), Collected[str]()
    for each in (name, output):
        cluster.create_topic(each)
    app = new_app(cluster)

    @app.consumer(name, exactly_once=True)
    class Forward(awoke.Consumer):
        def consume(self, batch: awoke.Batch[bytes]) -> None:
            with self.transaction() as transaction:
                try:
                    transaction.produce(output, b"never", timestamp_ms=timestamp_ms)
                except ValueError as error:
                    refused.add(str(error))

    send(cluster, name, [b"1"])
    awoke_run(app).idle()
    (text,) = refused.items
    assert "timestamp_ms" in text
