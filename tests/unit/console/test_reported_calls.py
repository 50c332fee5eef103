"""The remote calls of a process as its report tells of them: bounded, with deadlines as times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from awoke.console.reported_calls import AT_WORK_MAX, callers_of, calls_of
from awoke.rpc.responder.call_log import CallLog


def call(number: int = 0) -> Any:
    return SimpleNamespace(
        method="quote", caller="shop", place=("calls", 1, number), until_s=0.0, is_cancelled=number == 1
    )


def test_a_report_tells_of_calls_at_work_and_of_rejections() -> None:
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
