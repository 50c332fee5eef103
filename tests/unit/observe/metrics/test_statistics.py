"""librdkafka's statistics: the brokers of a client, in seconds and bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from awoke.observe.events import ClientStatistics
from awoke.observe.metrics.statistics import BrokerStatistics, brokers_of, merged

BROKER = {
    "name": "127.0.0.1:9092/1",
    "nodeid": 1,
    "nodename": "127.0.0.1:9092",
    "state": "UP",
    "txbytes": 100,
    "rxbytes": 70,
    "txretries": 2,
    "txerrs": 1,
    "rxerrs": 4,
    "req_timeouts": 3,
    "int_latency": {"min": 1, "avg": 1_500},
    "rtt": {"avg": 700},
}


def said(**brokers: Any) -> ClientStatistics:
    """Returns an event with what librdkafka says of these brokers."""
    document = {"name": "shop", "type": "consumer", "topics": {}, "brokers": brokers}
    return ClientStatistics(client="shop", json=msgspec.json.encode(document).decode())


def test_a_broker_is_shown_in_seconds_and_bytes() -> None:
    assert brokers_of(said(a=BROKER)) == [
        BrokerStatistics(
            client="consumer",
            broker="127.0.0.1:9092",
            is_connected=True,
            queue_s=0.0015,
            round_trip_s=0.0007,
            sent_bytes=100,
            received_bytes=70,
            retries=2,
            errors=1 + 4 + 3,
        )
    ]


def test_clients_of_one_kind_are_added_up() -> None:
    """Each consumer group of an app has a consumer."""
    (one,) = brokers_of(said(a=BROKER))
    (other,) = brokers_of(said(a={**BROKER, "state": "DOWN", "txbytes": 11, "rtt": {"avg": 900}}))
    (both,) = merged([other, one]).values()
    assert (both.is_connected, both.sent_bytes, both.received_bytes) == (True, 111, 140)
    assert (both.queue_s, both.round_trip_s, both.errors) == (0.0015, 0.0009, 16)
    assert list(merged([one])) == [("consumer", "127.0.0.1:9092")]


@pytest.mark.parametrize("state", ["INIT", "DOWN", "CONNECT", "AUTH_REQ", ""])
def test_a_broker_is_connected_in_no_other_state(state: str) -> None:
    (broker,) = brokers_of(said(a={**BROKER, "state": state}))
    assert not broker.is_connected


def test_what_is_no_broker_of_the_cluster_is_left_out() -> None:
    bootstrap, coordinator = {**BROKER, "nodeid": -1}, {**BROKER, "nodename": ""}
    assert brokers_of(said(a=bootstrap, b=coordinator)) == []
    assert brokers_of(ClientStatistics(client="shop", json='{"type": "producer"}')) == []


def test_a_broker_that_was_not_asked_yet_counts_nothing() -> None:
    assert brokers_of(said(a={"nodeid": 0, "nodename": "a:1"})) == [
        BrokerStatistics(
            client="consumer",
            broker="a:1",
            is_connected=False,
            queue_s=0.0,
            round_trip_s=0.0,
            sent_bytes=0,
            received_bytes=0,
            retries=0,
            errors=0,
        )
    ]


def test_statistics_of_another_form_are_an_error() -> None:
    for json in ("", "[]", '{"type": 3}'):
        with pytest.raises(msgspec.DecodeError):
            brokers_of(ClientStatistics(client="shop", json=json))
