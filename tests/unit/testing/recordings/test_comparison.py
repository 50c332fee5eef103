"""The results of old and new code are compared."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.testing.recordings.comparison import Difference, differences, is_ignored, report


def made(offset: int | None = 5, **changes: Any) -> dict[str, Any]:
    """Returns what was made of a record."""
    outputs = changes.pop("outputs", [])
    partition = None if offset is None else 0
    return {"partition": partition, "offset": offset, "state": "handled", "error": None, "outputs": outputs, **changes}


def output(value: Any, *, topic: str = "out", key: str | None = None, headers: Any = ()) -> dict[str, Any]:
    return {"topic": topic, "key": key, "headers": list(headers), "value": value}


def found(before: dict[str, Any], after: dict[str, Any], *ignored: str) -> list[tuple[str, str, str]]:
    return [each[2:] for each in differences([before], [after], ignored)]


def test_equal_results_do_not_differ() -> None:
    each = made(outputs=[output('{"a":[1,{"b":null}]}', key="k", headers=[["h", "x"]])])
    assert found(each, each) == []


def test_the_order_of_fields_and_spaces_are_no_difference() -> None:
    assert found(made(outputs=[output('{"a":1,"b":2}')]), made(outputs=[output('{"b": 2, "a": 1}')])) == []


def test_a_field_of_json_is_named_by_its_path() -> None:
    before = made(outputs=[output('{"a":1}'), output('{"lines":[{"price":3},{"price":4}],"old":true}')])
    after = made(outputs=[output('{"a":1}'), output('{"lines":[{"price":3},{"price":5.5}],"new":"x"}')])
    assert found(before, after) == [
        ("out 2 value.lines[1].price", "4", "5.5"),
        ("out 2 value.old", "true", "(nothing)"),
        ("out 2 value.new", "(nothing)", '"x"'),
    ]


@pytest.mark.parametrize(
    ("before", "after"), [("1", "1.0"), ("1", "true"), ('"1"', "1"), ("[1]", "[1,2]"), ("{}", "[]")]
)
def test_values_of_other_types_differ(before: str, after: str) -> None:
    assert len(found(made(outputs=[output(before)]), made(outputs=[output(after)]))) == 1


def test_text_bytes_keys_and_headers_differ() -> None:
    before = made(outputs=[output("text", key="a", headers=[["h", "x"], ["m", "1"], ["m", "2"]])])
    after = made(outputs=[output({"base64": "/w=="}, key="b", headers=[["m", "1"], ["m", "3"]])])
    assert found(before, after) == [
        ("out 1 key", '"a"', '"b"'),
        ("out 1 headers.h", '"x"', "(nothing)"),
        ("out 1 headers.m[1]", '"2"', '"3"'),
        ("out 1 value", '"text"', '{"base64":"/w=="}'),
    ]


def test_a_record_more_or_less_is_counted_for_its_topic() -> None:
    before = made(outputs=[output("1", topic="a"), output("2", topic="b")])
    after = made(outputs=[output("2", topic="b"), output("3", topic="b")])
    assert found(before, after) == [("a 1", "1", "(nothing)"), ("b 2", "(nothing)", "3")]


def test_state_and_error_differ() -> None:
    after = made(state="dead-lettered", error="ValueError: no")
    assert found(made(), after) == [("state", '"handled"', '"dead-lettered"'), ("error", "null", '"ValueError: no"')]


def test_a_record_on_one_side_only_differs() -> None:
    assert [each.offset for each in differences([made(1), made(2)], [made(2), made(3)])] == [1, 3]


def test_fields_that_may_differ_are_ignored_with_all_that_is_in_them() -> None:
    assert is_ignored("out 1 value.paid.at", ["value.paid"])
    assert is_ignored("out 1 value.lines[3].id", ["value.lines.id"])
    assert is_ignored("out 1 headers.trace", ["headers.trace"])
    assert is_ignored("state", ["state"])
    assert not is_ignored("out 1 value.paid_at", ["value.paid"])
    assert not is_ignored("out 1", ["value"])
    assert found(made(outputs=[output("1")]), made(outputs=[output("2")]), "value") == []


def test_a_report_names_each_record_once() -> None:
    each = [
        Difference(0, 5, "state", "1", "2"),
        Difference(0, 5, "error", "3", "4"),
        Difference(None, None, "sums 1 value", "5", "6"),
    ]
    assert list(report("orders", each)) == [
        "orders[0] offset 5",
        "  state: 1 → 2",
        "  error: 3 → 4",
        "behind the last record",
        "  sums 1 value: 5 → 6",
    ]


def test_a_long_value_is_cut() -> None:
    ((_, before, _),) = found(made(outputs=[output("x" * 500)]), made(outputs=[output("y")]))
    assert len(before) == 201
