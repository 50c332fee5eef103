"""The reporter: one warning for a topic that can't be written, and its end."""

from __future__ import annotations

import itertools
import logging
import threading
from typing import Any

import pytest

import awoke
from awoke.console import reporter as module
from awoke.console.reporter import CLIENT, Reporter, client_settings
from awoke.errors import BrokerUnreachable, QueueFull
from awoke.observe.events import ClientStatistics, TransactionAborted
from awoke.settings import load
from tests.unit.console.test_reports import group_of, shown_of

NO_BROKER = "127.0.0.1:1"


class FullProducer:
    """A producer whose queue is full."""

    def produce(self, topic: str, value: Any, **options: Any) -> None:
        raise QueueFull("the queue is full")


def reporter() -> Reporter:
    return Reporter(shown_of(group_of()), "shop", awoke.Events(), load({"bootstrap_servers": NO_BROKER}))


def test_a_topic_that_can_not_be_written_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    producer: Any = FullProducer()
    made = reporter()
    with caplog.at_level(logging.DEBUG, "awoke.console"):
        for _ in range(3):
            made._report(producer)
    assert [each.levelno for each in caplog.records] == [logging.WARNING, logging.DEBUG, logging.DEBUG]


class AwayProducer:
    """A producer whose brokers are away: no record gets an answer."""

    def __init__(self) -> None:
        self.topics = list[str]()

    def produce(self, topic: str, value: Any, **options: Any) -> Any:
        self.topics.append(topic)
        return self

    def add_done_callback(self, callback: Any) -> None: ...

    def done(self) -> bool:
        return False

    def result(self) -> Any:
        raise BrokerUnreachable("no broker answered", -195, "_TRANSPORT")


def test_brokers_that_are_away_cost_one_report_under_way_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    away: Any = AwayProducer()
    made = reporter()
    for _ in range(3):
        made._report(away)
    assert away.topics == [made.topics.reports], "the next report waits for the answer of this one"
    with caplog.at_level(logging.DEBUG, "awoke.console"):
        for _ in range(3):
            made._on_delivered(away)
    assert [each.levelno for each in caplog.records] == [logging.WARNING, logging.DEBUG, logging.DEBUG]


def test_a_stop_without_brokers_ends_the_thread() -> None:
    made = reporter()
    made.start()
    assert "awoke-console" in {each.name for each in threading.enumerate()}
    made.stop(0.05)
    assert "awoke-console" not in {each.name for each in threading.enumerate()}


class BusySignal:
    """A signal that moves the clock of a test; the app changes each 10 ms if it is busy, and has an end."""

    def __init__(self, made: Reporter, is_busy: bool, ends_s: float) -> None:
        self._made, self._is_busy, self._ends_s = made, is_busy, ends_s
        self.now_s = 0.0
        self.wakes = 0

    def wait(self, timeout_s: float, **_: object) -> None:
        self.wakes += 1
        self.now_s += min(timeout_s, 0.01) if self._is_busy else timeout_s
        self._made._is_closed = self.now_s >= self._ends_s
        if self._is_busy:
            self._made.tell_soon()

    def set(self) -> None: ...
    def clear(self) -> None: ...
    def leave(self) -> None: ...


@pytest.mark.parametrize(("is_busy", "reports_at_most", "apart_s"), [(True, 4 * 60 + 1, 0.25), (False, 7, 10.0)])
def test_a_busy_app_sends_at_most_four_reports_a_second_and_an_idle_one_each_ten(
    is_busy: bool, reports_at_most: int, apart_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, sent_s = reporter(), list[float]()
    signal: Any = BusySignal(made, is_busy, ends_s=60.0)
    nothing: Any = object()
    made._changed, made._admin, made._producer = signal, nothing, nothing
    monkeypatch.setattr(module, "monotonic_s", lambda: signal.now_s)
    monkeypatch.setattr(module, "ensure", lambda *_: None)
    monkeypatch.setattr(made, "_report", lambda _: sent_s.append(signal.now_s))
    monkeypatch.setattr(made, "_delete", lambda _: None)
    made._run()
    assert len(sent_s) <= reports_at_most
    assert len(sent_s) >= 0.9 * reports_at_most - 1
    assert min(after - before for before, after in itertools.pairwise(sent_s)) >= apart_s - 1e-6
    assert is_busy or signal.wakes <= 60 / 5 + 2, "an idle app wakes for its samples alone"


def test_a_reporter_that_was_not_started_can_be_closed_again() -> None:
    made = reporter()
    made.stop(0.0)
    made.stop(0.0)


def test_its_client_has_the_apps_login_and_no_transactions() -> None:
    given = {"transactional.id": "shop", "sasl.username": "ann"}
    kafka = client_settings(awoke.settings.Settings(kafka=given)).kafka
    assert kafka == {"sasl.username": "ann", **CLIENT}


def statistics(last_stable: int, end: int) -> ClientStatistics:
    at = f'{{"ls_offset": {last_stable}, "hi_offset": {end}}}'
    text = f'{{"type": "consumer", "topics": {{"orders": {{"partitions": {{"0": {at}}}}}}}}}'
    return ClientStatistics(client="c", json=text)


def test_a_transaction_that_appears_or_ends_is_reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reporter, "_run", lambda _: None)  # Nothing is sent.
    events = awoke.Events()
    made = Reporter(shown_of(group_of()), "shop", events, load({"bootstrap_servers": NO_BROKER}))
    made.start()
    try:
        found = list[bool]()
        for last_stable, end in [(5, 5), (5, 8), (5, 9), (9, 9), (10, 10)]:
            made._is_dirty = False
            events.emit(statistics(last_stable, end))
            found.append(made._is_dirty)
        assert found == [False, True, False, True, False]
    finally:
        made.stop(1.0)


def test_an_aborted_transaction_and_an_output_that_waits_are_reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reporter, "_run", lambda _: None)  # Nothing is sent.
    events = awoke.Events()
    made = Reporter(shown_of(group_of()), "shop", events, load({"bootstrap_servers": NO_BROKER}))
    made.start()
    at = '"0": {"msgs": 9, "msgq_cnt": 4}'
    text = f'{{"type": "producer", "name": "p-1", "topics": {{"out": {{"partitions": {{{at}}}}}}}}}'
    waits = ClientStatistics(client="c", json=text)
    aborted = TransactionAborted(client="c", code=1, code_name="FENCED", text="a newer one")
    try:
        found = list[bool]()
        for event in (waits, waits, waits, aborted):
            made._is_dirty = False
            events.emit(event)
            found.append(made._is_dirty)
        assert found == [False, True, False, True]
        told = made._reports.make(0, 0)
        assert [(each.topic, each.messages) for each in told.outputs] == [("out", 4)]
        assert [(each.code, each.count) for each in told.aborted] == [("FENCED", 1)]
    finally:
        made.stop(1.0)
