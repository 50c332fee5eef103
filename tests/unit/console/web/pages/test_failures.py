"""Failures by fingerprint: the last first, their trend, and one kind of them."""

from __future__ import annotations

from typing import Any

from awoke.console.views import ErrorRecord
from awoke.console.web.pages.failures import trend_of
from awoke.operate.commands.views import MAJOR
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, console, report


def record(fingerprint: str = "f", ago_ms: int = 0) -> ErrorRecord:
    fields: dict[str, Any] = dict.fromkeys(("node", "app", "event", "error_text", "traceback"), "x")
    at: dict[str, Any] = {"topic": "orders", "partition": 0, "at_ms": wall_ms() - ago_ms}
    return ErrorRecord(major=MAJOR, minor=0, fingerprint=fingerprint, error_type="ValueError", **fields, **at)


def test_failures_are_counted_by_minute() -> None:
    found = trend_of({1_000: 1, 999: 2, 941: 4, 940: 8}, 1_000 * 60_000 + 59_999)
    assert (len(found), found[-2:], found[0], sum(found)) == (60, [2.0, 1.0], 4.0, 7.0)


def test_the_last_failure_comes_first_and_has_a_page() -> None:
    live = FakeLive([report()], [record("old", 9_000), record("new"), record("new")])
    with console(live) as client:
        rows = client.get("/errors?format=json").json()["errors"]["rows"]
        one = client.get("/errors/new?format=json").json()
        assert client.get("/errors/nothing").status_code == 404
        assert client.get("/errors/new").status_code == 200
    assert [(each["error"]["fingerprint"], each["error"]["count"]) for each in rows] == [("new", 2), ("old", 1)]
    assert (one["places"], one["records"]["total"]) == (["orders[0]"], 2)
