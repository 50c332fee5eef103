"""The view models: what other versions send is read, or shown as it is."""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.console.views import MAJOR, History, NodeView, Report, Sample

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
    return NodeView(node="host.1", at_ms=2, is_newer=is_newer, is_silent=False, document=document)


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
