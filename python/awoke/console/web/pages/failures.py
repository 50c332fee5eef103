"""The failures of user code, by fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.console.state import MINUTE_MS, MINUTES
from awoke.console.views import ErrorRecord, ErrorView
from awoke.console.web.page import Asked, NoSuchPage, Page, Rows
from awoke.console.web.snapshot import Snapshot


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
    """The records that were counted."""
    dropped: int
    """Failures that have no record, because there were too many."""


class ErrorPage(msgspec.Struct, kw_only=True):
    """One fingerprint."""

    error: ErrorView
    trend: list[float]
    places: list[str]
    """The partitions where it has happened."""
    records: Rows[ErrorRecord]
    """The last ones that are kept, without their tracebacks."""


def trend_of(minutes: Mapping[int, int], now_ms: int) -> list[float]:
    """Returns the failures of each minute of the last hour, the oldest first."""
    last = now_ms // MINUTE_MS
    return [float(minutes.get(each, 0)) for each in range(last - MINUTES + 1, last + 1)]


def errors(asked: Asked) -> ErrorsPage:
    """Returns all fingerprints, the last failure first."""
    now = asked.snapshot()
    columns: dict[str, Callable[[ErrorView], Any]] = {
        "last": lambda each: each.last.at_ms,
        "count": lambda each: each.count,
        "error": lambda each: each.last.error_type,
        "handler": lambda each: each.last.handler,
    }
    found = asked.rows(now.view.errors, "last", columns, is_descending=True, text=text_of)
    table = found.shown_as(lambda each: ErrorRow(error=each, trend=trend_in(now, each.fingerprint)))
    return ErrorsPage(
        problem=now.problem,
        errors=table,
        records=sum(each.count for each in now.view.errors),
        dropped=sum(each.errors_dropped for each in now.reports.values()),
    )


def trend_in(now: Snapshot, fingerprint: str) -> list[float]:
    """Returns the failures of a fingerprint of each minute of the last hour."""
    return trend_of(now.trends.get(fingerprint, {}), now.view.at_ms)


def text_of(found: ErrorView) -> str:
    """Returns the text in which a filter looks."""
    last = found.last
    return f"{last.error_type} {last.error_text} {last.handler} {last.topic} {last.fingerprint}"


def error(asked: Asked) -> ErrorPage:
    """Returns one fingerprint."""
    now, wanted = asked.snapshot(), asked.path["fingerprint"]
    found = next((each for each in now.view.errors if each.fingerprint == wanted), None)
    if found is None:
        raise NoSuchPage(f"no failure among the last ones has the fingerprint {wanted}")
    records = [each for each in now.errors if each.fingerprint == wanted]
    places = sorted({f"{each.topic}[{each.partition}]" for each in records if each.topic is not None})
    columns = {"at": lambda each: each.at_ms, "attempt": lambda each: each.attempt, "node": lambda each: each.node}
    return ErrorPage(
        error=found,
        trend=trend_in(now, wanted),
        places=places,
        records=asked.rows(records, "at", columns, is_descending=True),
    )


PAGES = [
    Page("/errors", "Errors", errors, "errors.html", section="Work"),
    Page("/errors/{fingerprint:path}", "Error", error, "error.html"),
]
