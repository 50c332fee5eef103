"""The reporter and its error records: one warning for a topic that can't be written, what no record has, the end."""

from __future__ import annotations

import gc
import itertools
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import awoke
from awoke.console import reporter as module
from awoke.console.reporter import (
    CLIENT,
    PENDING_MAX,
    TRACEBACK_MAX,
    PendingErrors,
    Reporter,
    client_settings,
    fingerprint,
    record_of,
)
from awoke.console.views import ErrorRecord
from awoke.errors import BrokerUnreachable, QueueFull
from awoke.observe.events import BackgroundFailure, ClientStatistics, JobFailed, TransactionAbort
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
    aborted = TransactionAbort(client="c", code=1, code_name="FENCED", text="a newer one")
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


class NoGood(Exception):
    """The error of these tests."""


def charge() -> None:
    raise NoGood("no good")


def deliver() -> None:
    raise NoGood("no good")


def deep(calls: int = 500) -> None:
    if calls == 0:
        raise NoGood("x" * 100_000)
    deep(calls - 1)


def raised(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except NoGood as error:
        return error
    raise AssertionError


def failed(error: BaseException, offset: int = 7) -> JobFailed:
    return JobFailed(
        handler="charge",
        topic="orders",
        partition=0,
        offset=offset,
        attempt=2,
        retry_in_s=0.5,
        error=error,
        key_hash="ab12",
    )


def test_a_record_tells_place_attempt_and_traceback() -> None:
    record = record_of(failed(raised(charge)), "shop", "host.1")
    assert (record.handler, record.topic, record.partition, record.offset) == ("charge", "orders", 0, 7)
    assert (record.attempt, record.retry_in_s, record.key_hash) == (2, 0.5, "ab12")
    assert (record.app, record.node, record.event) == ("shop", "host.1", "job.failed")
    assert record.error_type == "tests.unit.console.test_reporter.NoGood"
    assert "in charge" in record.traceback
    assert msgspec.json.decode(msgspec.json.encode(record), type=ErrorRecord) == record


def test_a_failure_without_a_message_has_a_record_without_a_place() -> None:
    error = raised(charge)
    record = record_of(
        BackgroundFailure(owner="shop", function="refresh", failures=1, restart_in_s=None, error=error),
        "shop",
        "host.1",
    )
    assert (record.topic, record.offset, record.attempt) == (None, None, None)


def test_a_fingerprint_is_that_of_the_class_and_the_place() -> None:
    assert fingerprint(raised(charge)) == fingerprint(raised(charge))
    assert fingerprint(raised(charge)) != fingerprint(raised(deliver))


def test_a_deep_traceback_and_a_long_text_are_cut() -> None:
    record = record_of(failed(raised(deep)), "shop", "host.1")
    assert len(record.traceback) <= TRACEBACK_MAX
    assert len(record.error_text) == 1_000


def test_text_that_utf_8_does_not_have_can_be_sent() -> None:
    record = record_of(failed(NoGood("\ud800")), "shop", "host.1")
    assert b"?" in msgspec.json.encode(record)


def test_more_failures_than_the_bound_are_counted_and_dropped() -> None:
    errors = PendingErrors("shop", "host.1")
    for offset in range(PENDING_MAX + 5):
        errors.add(failed(NoGood(), offset))
    assert (errors.failures, errors.dropped) == (PENDING_MAX + 5, 5)
    assert [each.offset for each in errors.take()] == list(range(PENDING_MAX))
    assert errors.take() == []


def test_the_exception_is_not_kept() -> None:
    errors = PendingErrors("shop", "host.1")
    error = raised(charge)
    kept = weakref.ref(error)
    errors.add(failed(error))
    del error
    gc.collect()
    assert kept() is None
    assert len(errors.take()) == 1


def test_a_fault_of_a_report_ends_no_thread_and_is_a_reason() -> None:
    made = reporter()

    def fail(argument: object) -> None:
        raise TypeError("a bug")

    made._guarded(fail, None)
    assert list(made.reasons()) == ["this process can't report to its console: TypeError; see the log"]
    made._guarded(lambda argument: None, None)
    assert list(made.reasons()) == []
