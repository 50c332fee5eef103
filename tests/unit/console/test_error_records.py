"""Error records: fingerprints, their bounds, and what they never contain."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import msgspec

from awoke.console.error_records import PENDING_MAX, TRACEBACK_MAX, PendingErrors, fingerprint, record_of
from awoke.console.views import ErrorRecord
from awoke.observe.events import BackgroundFailed, JobFailed


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
    assert record.error_type == "tests.unit.console.test_error_records.NoGood"
    assert "in charge" in record.traceback
    assert msgspec.json.decode(msgspec.json.encode(record), type=ErrorRecord) == record


def test_a_failure_without_a_message_has_a_record_without_a_place() -> None:
    error = raised(charge)
    record = record_of(
        BackgroundFailed(owner="shop", function="refresh", failures=1, restart_in_s=None, error=error), "shop", "host.1"
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
