"""The results of old and new code are compared."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.declare.secret_topics import Form, SecretPart, SecretTopics
from awoke.payloads.secret_paths import SecretPaths
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


def secret(*fields: str, part: Any = "value", form: Form = "json", optional: tuple[str, ...] = ()) -> SecretTopics:
    return SecretTopics([SecretPart("out", part, form, SecretPaths(fields, optional))])


def masked(before: Any, after: Any, secrets: SecretTopics) -> list[tuple[str, str, str]]:
    old, new = ([made(outputs=[] if each is None else [each])] for each in (before, after))
    return [each[2:] for each in differences(old, new, secrets=secrets)]


def test_secrets_are_compared_and_not_shown() -> None:
    before, after = output('{"id":1,"card":{"no":4711,"on":1}}'), output('{"id":2,"card":{"no":4712,"on":1}}')
    both = '"[secret]"', '"[secret]"'
    assert masked(before, after, secret("/card")) == [("out 1 value.id", "1", "2"), ("out 1 value.card", *both)]
    assert masked(before, after, secret("/card/no"))[1:] == [("out 1 value.card.no", *both)]
    same = output('{"card":{"on":1,"no":4711},"id":1}')
    assert masked(before, same, secret("/card")) == []
    assert len(masked(before, output('{"id":1,"card":{"no":4711.0,"on":1}}'), secret("/card"))) == 1
    assert masked(before, None, secret("/card")) == [("out 1", '{"id":1,"card":"[secret]"}', "(nothing)")]


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ("4711", secret("/card")),
        ("card 4711", secret("/card")),
        ('{"cards":4711}', secret("/card")),
        ({"base64": "/w=="}, secret(optional=("/card",))),
        ('{"card":1,"id":4711}', secret("/card", form="other")),
    ],
)
def test_what_lacks_the_form_of_its_type_is_a_secret_as_a_whole(value: Any, secrets: SecretTopics) -> None:
    ((path, shown, _),) = masked(output(value), output("[]"), secrets)
    assert (path, shown) == ("out 1 value", '"[secret]"')


def test_secrets_of_keys_are_not_shown() -> None:
    before, after = output("1", key='{"id":1,"card":4711}'), output("1", key='{"id":2,"card":4711}')
    shown = ('{"id":1,"card":"[secret]"}', '{"id":2,"card":"[secret]"}')
    assert masked(before, after, secret("/card", part="key")) == [("out 1 key", *shown)]
    assert masked(before, output("1"), secret("", part="key")) == [("out 1 key", '"[secret]"', "null")]
