"""The view models: what other versions send is read, or shown as it is."""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.console.views import (
    AbortedByCode,
    Failing,
    History,
    NodeView,
    OutputTopic,
    Partition,
    Report,
    Running,
    Sample,
)
from awoke.operate.commands.views import MAJOR

REPORT = Report(
    major=MAJOR,
    minor=0,
    node="host.1",
    app="shop",
    host="host",
    pid=1,
    started_at_ms=1,
    at_ms=2,
    sequence=3,
    state="running",
    groups=["shop"],
    history=History(of_5_s=[Sample(1, 2, 3, 4, 5)]),
)


def view_of(document: dict[str, Any], *, is_newer: bool = False) -> NodeView:
    return NodeView(
        node="host.1", at_ms=2, is_newer=is_newer, is_silent=False, document=msgspec.Raw(msgspec.json.encode(document))
    )


def test_a_report_is_the_same_after_its_way_through_a_topic() -> None:
    assert msgspec.json.decode(msgspec.json.encode(REPORT), type=Report) == REPORT


def test_fields_of_a_later_minor_version_are_kept_and_do_not_disturb() -> None:
    document = {**msgspec.to_builtins(REPORT), "minor": 7, "colour": "blue"}
    view = view_of(document)
    report = view.report()
    assert report is not None
    assert report.sequence == 3
    assert msgspec.json.decode(msgspec.json.encode(view))["document"]["colour"] == "blue"


def test_a_report_of_a_newer_node_is_not_interpreted() -> None:
    assert view_of({"major": MAJOR + 1, "node": ["another form"]}, is_newer=True).report() is None


def test_lanes_are_made_of_what_runs_and_what_waits() -> None:
    at = Partition(
        group="shop",
        topic="orders",
        partition=0,
        oldest_offset=4,
        failing=[
            Failing(offset=4, key_hash="a", attempts=2, error="no good", since_ms=10, next_ms=90),
            Failing(offset=6, key_hash="b", attempts=1, error="no good", since_ms=20, next_ms=80),
        ],
        running=[
            Running(offset=9, attempt=1, remaining=1, since_ms=50, key_hash="c"),
            Running(offset=6, attempt=2, remaining=1, since_ms=60),
        ],
    )
    found = [(each.offset, each.key_hash, each.is_running, each.attempt, each.next_ms) for each in at.lanes()]
    assert found == [(4, "a", False, 2, 90), (6, "b", True, 2, None), (9, "c", True, 1, None)]
    assert [each.keeps_commit_back for each in at.lanes()] == [True, False, False]


def test_a_report_of_an_older_process_tells_nothing_of_its_producers() -> None:
    older = msgspec.to_builtins(REPORT)
    del older["outputs"], older["aborted"], older["queue_full_since_ms"]
    report = msgspec.convert(older, Report)
    assert (report.outputs, report.aborted, report.queue_full_since_ms) == ([], [], None)


def test_fields_that_a_newer_process_adds_are_left_out() -> None:
    output = msgspec.convert({"topic": "orders", "messages": 3, "since_ms": None, "added_later": 1}, OutputTopic)
    assert msgspec.to_builtins(output) == {"topic": "orders", "messages": 3, "since_ms": None}
    aborted = msgspec.convert(
        {"code": "FENCED", "count": 1, "last_ms": 5, "last_text": "no", "added_later": 1}, AbortedByCode
    )
    assert (aborted.code, aborted.count, aborted.last_ms, aborted.last_text) == ("FENCED", 1, 5, "no")
