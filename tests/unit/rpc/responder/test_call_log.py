"""The calls of a service, as a console sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from awoke.console.reported_calls import AT_WORK_MAX, callers_of, calls_of
from awoke.rpc.responder import call_log
from awoke.rpc.responder.call_log import CallLog, times_of


def call(number: int = 0) -> Any:
    return SimpleNamespace(
        method="quote", caller="shop", place=("calls", 1, number), until_s=0.0, is_cancelled=number == 1
    )


def test_quantiles_are_those_of_the_times() -> None:
    assert times_of([]) == (None, None)
    assert times_of([4.0]) == (4.0, 4.0)
    assert times_of([float(each) for each in range(100)]) == (50.0, 95.0)


def test_a_method_has_outcomes_and_times_and_a_reply_of_no_known_method_counts_nothing() -> None:
    log = CallLog()
    log.ended("quote", "ok", 0.001, 0.002)
    log.ended("quote", "internal", 0.003, 0.004)
    log.acknowledged("quote", 0.005)
    log.acknowledged("other", 0.005)
    (found,) = log.methods()
    assert (found.method, found.outcomes) == ("quote", {"ok": 1, "internal": 1})
    assert (found.queue.most_s, found.run.most_s, found.reply.most_s) == (0.003, 0.004, 0.005)


def test_methods_are_bounded() -> None:
    log = CallLog()
    for number in range(call_log.METHODS_MAX + 5):
        log.ended(str(number), "ok", 0.0, 0.0)
    assert len(log.methods()) == call_log.METHODS_MAX


def test_a_report_tells_of_calls_at_work_while_they_are_and_of_rejections() -> None:
    log = CallLog()
    log.count = lambda: {"running": 2, "waiting": 3, "expired": 4}
    at_work = [call(number) for number in range(AT_WORK_MAX + 5)]
    for each in at_work:
        log.began(each)
    log.rejected("queue_full")
    found = calls_of(log)
    assert (found.running, found.waiting, found.expired, found.rejected) == (2, 3, 4, {"queue_full": 1})
    assert [each.offset for each in found.at_work] == list(range(AT_WORK_MAX))
    assert [each.is_cancelled for each in found.at_work[:2]] == [False, True]
    for each in at_work:
        log.left(each)
    assert calls_of(log).at_work == []


def test_callers_are_told_by_service_without_what_never_happened() -> None:
    (found,) = callers_of({"prices": {"open": 2, "begun": 5, "late": 0}})
    assert (found.service, found.open, found.events) == ("prices", 2, {"begun": 5})
