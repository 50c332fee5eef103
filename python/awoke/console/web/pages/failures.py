"""The failures of user code, by fingerprint."""

from __future__ import annotations

import msgspec

from awoke.console.views import ErrorRecord, ErrorView
from awoke.console.web.page import Asked, Missing, Page, Rows

TREND_STEPS = 60
TREND_MS = 60_000


class ErrorRow(msgspec.Struct, kw_only=True):
    """The failures of one fingerprint."""

    error: ErrorView
    trend: list[float]
    """Failures of each minute of the last hour."""


class ErrorsPage(msgspec.Struct, kw_only=True):
    """All fingerprints."""

    problem: str | None
    errors: Rows[ErrorRow]
    records: int
    """The records that were read: the last ones."""
    dropped: int
    """Failures that have no record, because there were too many."""


class ErrorPage(msgspec.Struct, kw_only=True):
    """One fingerprint."""

    error: ErrorView
    trend: list[float]
    places: list[str]
    """The partitions where it has happened."""
    records: Rows[ErrorRecord]


def trend_of(records: list[ErrorRecord], now_ms: int) -> list[float]:
    """Returns the failures of each minute of the last hour, the oldest first."""
    found = [0.0] * TREND_STEPS
    for each in records:
        step = TREND_STEPS - 1 - (now_ms - each.at_ms) // TREND_MS
        if 0 <= step < TREND_STEPS:
            found[step] += 1
    return found


def errors(asked: Asked) -> ErrorsPage:
    """Returns all fingerprints, the last failure first."""
    now = asked.snapshot()
    by_fingerprint: dict[str, list[ErrorRecord]] = {}
    for each in now.errors:
        by_fingerprint.setdefault(each.fingerprint, []).append(each)
    rows = [
        ErrorRow(error=each, trend=trend_of(by_fingerprint.get(each.fingerprint, []), now.view.at_ms))
        for each in now.view.errors
    ]
    columns = {
        "last": lambda each: each.error.last.at_ms,
        "count": lambda each: each.error.count,
        "error": lambda each: each.error.last.error_type,
        "handler": lambda each: each.error.last.handler,
    }
    table = asked.rows(rows, "last", columns, is_descending=True, text=text_of)
    dropped = sum(each.errors_dropped for each in now.reports.values())
    return ErrorsPage(problem=now.problem, errors=table, records=len(now.errors), dropped=dropped)


def text_of(row: ErrorRow) -> str:
    """Returns the text in which a filter looks."""
    last = row.error.last
    return f"{last.error_type} {last.error_text} {last.handler} {last.topic} {last.fingerprint}"


def error(asked: Asked) -> ErrorPage:
    """Returns one fingerprint."""
    now, wanted = asked.snapshot(), asked.path["fingerprint"]
    found = next((each for each in now.view.errors if each.fingerprint == wanted), None)
    if found is None:
        raise Missing(f"no failure among the last ones has the fingerprint {wanted}")
    records = [each for each in now.errors if each.fingerprint == wanted]
    places = sorted({f"{each.topic}[{each.partition}]" for each in records if each.topic is not None})
    columns = {"at": lambda each: each.at_ms, "attempt": lambda each: each.attempt, "node": lambda each: each.node}
    return ErrorPage(
        error=found,
        trend=trend_of(records, now.view.at_ms),
        places=places,
        records=asked.rows(records, "at", columns, is_descending=True),
    )


PAGES = [
    Page("/errors", "Errors", errors, "errors.html", section="Work"),
    Page("/errors/{fingerprint:path}", "Error", error, "error.html"),
]
