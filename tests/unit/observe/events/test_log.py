"""The log lines of events: their level and text, and one line for many errors of clients that say the same."""

from __future__ import annotations

import json
import logging
import pickle

import pytest

from awoke.observe.broker_lines import BrokerLines
from awoke.observe.events import (
    ClientError,
    ClientLog,
    Event,
    Events,
    LaneFailed,
    MessageDeadLettered,
    OffsetsCommitted,
    PartitionPaused,
    PartitionsAssigned,
    RpcFailed,
    RpcRefused,
)
from awoke.observe.events.bus import log, plain, write
from awoke.observe.events.catalogue import CATALOGUE
from tests.support.events import example_of
from tests.unit.observe.test_broker_lines import AWAY, error_of
from tests.unit.observe.test_logs import job_failed


@pytest.mark.parametrize(
    "event",
    [
        LaneFailed(handler="handle", topic="orders", partition=0, offset=7, error=ValueError("no good")),
        RpcFailed(method="find", caller="web", error=ValueError("no good")),
        RpcRefused(reason="forged", partition=0, offset=7),
    ],
    ids=lambda event: event.name,
)
def test_what_fails_in_user_code_or_is_refused_is_a_warning_at_least(
    event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="awoke.events"):
        Events().emit(event)
    (record,) = caplog.records
    assert record.levelno >= logging.WARNING
    assert event.name in record.getMessage()
    assert bool(record.exc_info) == event.is_of_user_code


@pytest.mark.parametrize(("partitions", "level"), [([], logging.DEBUG), ([("orders", 0)], logging.INFO)])
def test_a_rebalance_that_changes_nothing_is_for_debugging(
    partitions: list[tuple[str, int]], level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        log(PartitionsAssigned(client="shop", partitions=partitions), BrokerLines())
    assert [record.levelno for record in caplog.records] == [level]


def test_a_failing_message_has_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        for attempt in (1, 2, 3):
            events.emit(job_failed(attempt))
        error = ValueError("no good")
        events.emit(MessageDeadLettered(handler="handle", topic="orders", partition=3, offset=7, error=error))
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False, False]
    assert all("ValueError('no good')" in record.getMessage() for record in caplog.records[1:])


def emit_error(events: Events, text: str, code_name: str = "_TRANSPORT", client: str = "shop") -> None:
    events.emit(error_of(text, code_name, client))


def test_a_broker_that_is_away_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    heard: list[object] = []
    events.subscribe(ClientError, heard.append)
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        for text in AWAY * 3:
            emit_error(events, text)
            emit_error(events, text, client="awoke")
        events.emit(ClientLog(client="shop", level=3, facility="FAIL", text="[thrd:x]: " + AWAY[0]))
        for count in range(5):
            emit_error(events, f"{count}/{count} brokers are down", "_ALL_BROKERS_DOWN")
        emit_error(events, "[::1]:9092/1: Connect failed: Connection refused")
        emit_error(events, "127.0.0.1:4321/1: Connect failed: Connection refused")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4
    assert [part in text for part, text in zip(("1234", "_ALL_BROKERS_DOWN", "::1", "4321"), said, strict=True)] == [
        True
    ] * 4
    assert len(heard) == 2 * 3 * len(AWAY) + 5 + 2, "subscribers hear all of it"


def test_brokers_that_are_back_are_one_line_and_may_go_again(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    with caplog.at_level(logging.INFO, logger="awoke"):
        for _ in range(2):
            emit_error(events, "1/1 brokers are down", "_ALL_BROKERS_DOWN")
            events.emit(OffsetsCommitted(client="shop", offsets=[]))
            events.emit(OffsetsCommitted(client="shop", offsets=[]))
    assert [record.getMessage().split()[0] for record in caplog.records] == ["client.error", "brokers"] * 2


def test_a_fatal_error_is_always_said(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        for _ in range(2):
            events.emit(ClientError(client="shop", code=82, code_name="FENCED", text="fenced", is_fatal=True))
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


@pytest.mark.parametrize("event", CATALOGUE.values(), ids=lambda event: event.name)
def test_every_event_is_one_line_with_its_fields_and_without_users_of_addresses(
    event: type[Event], caplog: pytest.LogCaptureFixture
) -> None:
    names = {"text", "reason", "client"}.intersection(event.__struct_fields__)
    texts = dict.fromkeys(names, "sasl://me:canary@host:9092\x1b[31m")
    with caplog.at_level(logging.DEBUG):
        log(example_of(event, **texts), BrokerLines())
    (record,) = caplog.records
    line = record.getMessage()
    assert line.isprintable()
    assert "canary" not in line
    if event is not ClientLog:
        shown = [name for name in event.__struct_fields__ if name != "error"]
        assert [word for word in shown if f" {word}=" not in line] == []
        assert line.startswith(f"{event.name} ") or not shown


def test_an_error_is_in_the_line_unless_its_traceback_follows(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        write(example_of(PartitionPaused), logging.ERROR)
        write(example_of(LaneFailed), logging.WARNING)
    paused, failed = caplog.records
    assert "error=ValueError('no good')" in paused.getMessage()
    assert paused.exc_info is None
    assert "error=" not in failed.getMessage()
    assert failed.exc_info is not None


def test_a_line_carries_its_event_for_formatters(caplog: pytest.LogCaptureFixture) -> None:
    event = job_failed(1)
    with caplog.at_level(logging.DEBUG, logger="awoke.events"):
        log(event, BrokerLines())
    (record,) = caplog.records
    fields = record.__dict__["awoke"]
    assert fields == {"event": "job.failed", "fields": {**event.fields, "error": "ValueError: no good"}}
    assert json.loads(json.dumps(fields)) == fields, "other formatters can write it"
    record.exc_info = None  # As `QueueHandler` does.
    assert pickle.loads(pickle.dumps(record)).__dict__["awoke"] == fields


def test_what_a_line_carries_is_plain_and_names_no_user_of_an_address() -> None:
    class Bad(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    given = {"a": [("orders", 0)], "b": {1: {"x"}}, "c": b"x", "d": object, "e": Bad(), "f": "sasl://me:canary@host"}
    found = plain(given)
    assert found["a"] == [["orders", 0]]
    assert found["b"] == {"1": ["x"]}
    assert found["c"] == b"x"
    assert found["d"] == "<class 'object'>"
    assert found["e"].startswith("Bad: <")
    assert "canary" not in found["f"]


def test_nothing_is_rendered_below_the_level_of_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    class Unprintable:
        def __repr__(self) -> str:
            rendered.append(1)
            return ""

    events, rendered = Events(), list[int]()
    with caplog.at_level(logging.INFO, logger="awoke.events"):
        events.emit("shop.opened", customer=Unprintable())
    assert (caplog.records, rendered) == ([], [])


def test_a_line_of_librdkafka_goes_to_its_own_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        log(ClientLog(client="shop", level=4, facility="MAXPOLL", text="late\x07"), BrokerLines())
    assert [(each.name, each.levelno, each.getMessage()) for each in caplog.records] == [
        ("awoke.librdkafka", logging.WARNING, r"MAXPOLL: late\x07")
    ]
