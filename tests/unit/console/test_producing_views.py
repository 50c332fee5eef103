"""The parts of a report that tell of its producers: an older process has none, and a newer one may say more."""

from __future__ import annotations

import msgspec

from awoke.console.producing_views import Aborted, Output
from awoke.console.views import Report
from tests.unit.console.test_views import REPORT


def test_a_report_of_an_older_process_tells_nothing_of_its_producers() -> None:
    older = msgspec.to_builtins(REPORT)
    del older["outputs"], older["aborted"], older["queue_full_since_ms"]
    report = msgspec.convert(older, Report)
    assert (report.outputs, report.aborted, report.queue_full_since_ms) == ([], [], None)


def test_fields_that_a_newer_process_adds_are_left_out() -> None:
    output = msgspec.convert({"topic": "orders", "messages": 3, "since_ms": None, "added_later": 1}, Output)
    assert msgspec.to_builtins(output) == {"topic": "orders", "messages": 3, "since_ms": None}
    aborted = msgspec.convert(
        {"code": "FENCED", "count": 1, "last_ms": 5, "last_text": "no", "added_later": 1}, Aborted
    )
    assert (aborted.code, aborted.count, aborted.last_ms, aborted.last_text) == ("FENCED", 1, 5, "no")
