"""A message that is not delivered, and whose handle was not looked at, is told: an event, a counter, a line."""

from __future__ import annotations

import gc

import pytest

import awoke
from awoke.observe.events import DeliveryLost
from awoke.testing import EmbeddedCluster
from tests.support.waiting import Collected

KAFKA = {"message.timeout.ms": 300, "linger.ms": 0}


def lost_by(send: object, caplog: pytest.LogCaptureFixture) -> list[DeliveryLost]:
    """Returns what is told of messages to brokers that have gone."""
    events, told = awoke.Events(), Collected[DeliveryLost]()
    events.subscribe(DeliveryLost, told.add)
    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        producer = awoke.Producer(cluster.bootstrap_servers, kafka=KAFKA, events=events)
        producer.produce("orders", b"arrives").wait(30)
    assert callable(send)
    with producer:
        send(producer)
    return list(told.items)


def test_messages_whose_handles_are_dropped_are_told(caplog: pytest.LogCaptureFixture) -> None:
    def send(producer: awoke.Producer) -> None:
        for _ in range(3):
            producer.produce("orders", b"dropped")

    told = lost_by(send, caplog)
    assert sum(each.messages for each in told) == 3
    assert {(each.topic, each.code_name) for each in told} == {("orders", "_MSG_TIMED_OUT")}
    lines = [each for each in caplog.records if "delivery.lost" in each.message and each.levelname == "ERROR"]
    assert len(lines) == 1, "one line in ten seconds"
    assert "topic='orders'" in lines[0].message


def test_a_handle_that_is_kept_and_not_looked_at_is_told_when_it_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    def send(producer: awoke.Producer) -> None:
        kept = [producer.produce("orders", b"kept")]
        producer.flush(30)
        kept.clear()
        gc.collect()

    assert [each.messages for each in lost_by(send, caplog)] == [1]


def test_an_answer_that_was_looked_at_is_not_told_again(caplog: pytest.LogCaptureFixture) -> None:
    def send(producer: awoke.Producer) -> None:
        with pytest.raises(awoke.DeliveryFailed):
            producer.produce("orders", b"waited for").wait(30)
        with pytest.raises(awoke.DeliveryFailed):
            awoke.wait_all([producer.produce("orders", b"waited for")], 30)

    assert lost_by(send, caplog) == []
