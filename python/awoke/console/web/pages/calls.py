"""Remote calls: the methods of the app with their times, calls at work, rejections, and the calls that it makes."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable

import msgspec

from awoke.console.views import CallAtWork, CallTimes, MethodCalls, Report
from awoke.console.web.page import Asked, Page, Rows

GOOD = ("ok", "cached")
"""The outcomes that are no errors."""


class MethodRow(msgspec.Struct, kw_only=True):
    """A method of the app, over the processes that have answered calls of it."""

    method: str
    calls: int
    """Of the processes since the start of each."""
    errors: int
    outcomes: dict[str, int]
    queue_ms: CallTimes
    """The times are those of the slowest process."""
    run_ms: CallTimes
    reply_ms: CallTimes
    nodes: list[str]


class AtWorkRow(msgspec.Struct, kw_only=True):
    """A call whose method runs."""

    node: str
    call: CallAtWork


class CallerRow(msgspec.Struct, kw_only=True):
    """The calls to one service, of all processes together."""

    service: str
    open: int
    events: dict[str, int]
    nodes: int


class Rejection(msgspec.Struct, kw_only=True):
    """Calls that were not executed, of all processes since the start of each."""

    reason: str
    count: int


class CallsPage(msgspec.Struct, kw_only=True):
    """All remote calls."""

    problem: str | None
    methods: Rows[MethodRow]
    at_work: list[AtWorkRow]
    """Those whose deadline is nearest, at most 100."""
    running: int
    waiting: int
    rejections: list[Rejection]
    callers: list[CallerRow]


def calls(asked: Asked) -> CallsPage:
    """Returns the calls that the app answers and makes."""
    now = asked.snapshot()
    reports = list(now.live.values())
    columns: dict[str, Callable[[MethodRow], object]] = {
        "method": lambda each: each.method,
        "calls": lambda each: each.calls,
        "errors": lambda each: each.errors,
        "queue": lambda each: each.queue_ms.p95,
        "run": lambda each: each.run_ms.p95,
        "reply": lambda each: each.reply_ms.p95,
    }
    answered = [each.calls for each in reports if each.calls is not None]
    return CallsPage(
        problem=now.problem,
        methods=asked.rows(methods_of(reports), "method", columns, text=lambda each: each.method),
        at_work=at_work_of(reports)[:100],
        running=sum(each.running for each in answered),
        waiting=sum(each.waiting for each in answered),
        rejections=rejections_of(reports),
        callers=callers_of(reports),
    )


def methods_of(reports: Iterable[Report]) -> list[MethodRow]:
    """Returns a row for each method that was called."""
    found: dict[str, list[tuple[str, MethodCalls]]] = {}
    for report in reports:
        for each in [] if report.calls is None else report.calls.methods:
            found.setdefault(each.method, []).append((report.node, each))
    return [row_of(name, holders) for name, holders in found.items()]


def row_of(name: str, holders: list[tuple[str, MethodCalls]]) -> MethodRow:
    """Returns the row of a method that these processes have answered."""
    outcomes: collections.Counter[str] = collections.Counter()
    for _, each in holders:
        outcomes.update(each.outcomes)
    return MethodRow(
        method=name,
        calls=outcomes.total(),
        errors=sum(count for outcome, count in outcomes.items() if outcome not in GOOD),
        outcomes=dict(outcomes.most_common()),
        queue_ms=slowest(each.queue_ms for _, each in holders),
        run_ms=slowest(each.run_ms for _, each in holders),
        reply_ms=slowest(each.reply_ms for _, each in holders),
        nodes=[node for node, _ in holders],
    )


def slowest(times: Iterable[CallTimes]) -> CallTimes:
    """Returns the times of the process with the highest 95th percentile."""
    known = [each for each in times if each.p95 is not None]
    return max(known, key=lambda each: each.p95 or 0.0, default=CallTimes(p50=None, p95=None))


def at_work_of(reports: Iterable[Report]) -> list[AtWorkRow]:
    """Returns the calls whose methods run, the one with the nearest deadline first."""
    found = [
        AtWorkRow(node=report.node, call=call)
        for report in reports
        if report.calls is not None
        for call in report.calls.at_work
    ]
    return sorted(found, key=lambda each: each.call.until_ms)


def rejections_of(reports: Iterable[Report]) -> list[Rejection]:
    """Returns why calls were not executed, the most frequent reason first; `expired` ones were skipped unread."""
    found: collections.Counter[str] = collections.Counter()
    for report in reports:
        if report.calls is not None:
            found.update(report.calls.rejected)
            found["expired"] += report.calls.expired
    return [Rejection(reason=reason, count=count) for reason, count in found.most_common() if count]


def callers_of(reports: Iterable[Report]) -> list[CallerRow]:
    """Returns the calls that the app makes, by service."""
    found: dict[str, CallerRow] = {}
    for report in reports:
        for each in report.callers:
            row = found.setdefault(each.service, CallerRow(service=each.service, open=0, events={}, nodes=0))
            row.open += each.open
            row.nodes += 1
            for what, count in each.events.items():
                row.events[what] = row.events.get(what, 0) + count
    return [found[service] for service in sorted(found)]


PAGES = [Page("/calls", "Calls", calls, "calls.html", section="Work")]
