"""Values of JSON for Avro: what fits is made, and what does not fit is named without its value."""

from __future__ import annotations

import datetime
import decimal
import io
from typing import Any

import fastavro
import pytest

from awoke.cli.encoding.avro_values import fitting

PLACED = {"type": "record", "name": "shop.Placed", "fields": [{"name": "id", "type": "long"}]}
CANCELLED = {
    "type": "record",
    "name": "shop.Cancelled",
    "fields": [{"name": "id", "type": "long"}, {"name": "why", "type": "string", "default": ""}],
}
LINE = {"type": "record", "name": "shop.Line", "fields": [{"name": "sku", "type": "string"}]}
STATE = {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}
DAY = {"type": "int", "logicalType": "date"}
AT = {"type": "long", "logicalType": "timestamp-micros"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
NEW_YEAR = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def record(*types: Any) -> Any:
    """Returns the schema of a record with the fields a, b and so on."""
    fields = [{"name": chr(ord("a") + number), "type": each} for number, each in enumerate(types)]
    return fastavro.parse_schema({"type": "record", "name": "shop.Order", "fields": fields})


@pytest.mark.parametrize(
    ("kind", "value", "made"),
    [
        ("string", "A1", "A1"),
        ("long", -(1 << 63), -(1 << 63)),
        ("double", 3, 3),
        ("boolean", True, True),
        ("null", None, None),
        ("bytes", "/w==", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 1}, "/w==", b"\xff"),
        (STATE, "PAID", "PAID"),
        (DAY, "2026-01-01", NEW_YEAR.date()),
        (DAY, 7, 7),
        (AT, "2026-01-01T00:00:00Z", NEW_YEAR),
        (PRICE, "1.50", decimal.Decimal("1.50")),
        (PRICE, 1.5, decimal.Decimal("1.5")),
        (["null", "bytes"], None, None),
        (["null", "bytes"], "/w==", b"\xff"),
        (["long", "string"], "A1", ("string", "A1")),
        (["null", "long", "string"], None, None),
        (["double", "long"], 7, ("long", 7)),
        (["float", "double"], 0.1, ("double", 0.1)),
        (["bytes", "string"], "abcd", ("string", "abcd")),
        (["bytes", "string"], ["bytes", "/w=="], ("bytes", b"\xff")),
        ([DAY, "string"], "2026-01-01", ("string", "2026-01-01")),
        ([DAY, "boolean"], "2026-01-01", ("int", NEW_YEAR.date())),
        ([PLACED, CANCELLED], {"id": 7, "why": "x"}, ("shop.Cancelled", {"id": 7, "why": "x"})),
        ([PLACED, CANCELLED], ["shop.Cancelled", {"id": 7}], ("shop.Cancelled", {"id": 7})),
        ([PLACED, {"type": "map", "values": "long"}], {"x": 7}, ("map", {"x": 7})),
        ({"type": "map", "values": "bytes"}, {"x": "/w=="}, {"x": b"\xff"}),
        ({"type": "array", "items": LINE}, [{"sku": "A1"}], [{"sku": "A1"}]),
    ],
)
def test_a_value_becomes_what_fastavro_takes(kind: Any, value: Any, made: Any) -> None:
    assert fitting(record(kind))({"a": value}) == {"a": made}


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("string", 7, "field 'a' takes string, not a number"),
        ("long", "seven", "field 'a' takes long, not text"),
        ("long", True, "field 'a' takes long, not true or false"),
        ("int", 1 << 31, "field 'a' is a number that is too large for int"),
        ("bytes", "no base64!", "field 'a' takes bytes as base64, not text"),
        ("bytes", 7, "field 'a' takes bytes as base64, not a number"),
        (STATE, "LOST", "field 'a' takes one of OPEN, PAID, not text"),
        (AT, "today", "field 'a' takes timestamp-micros, not text"),
        (PRICE, True, "field 'a' takes decimal, not true or false"),
        (PRICE, "cheap", "field 'a' takes decimal, not text"),
        (["null", LINE], {"sku": 7}, "field 'a.sku' takes string, not a number"),
        (["long", "boolean"], [], "field 'a' takes long or boolean, not an array"),
        ({"type": "array", "items": LINE}, [{}], r"field 'a\[0\].sku' \(string\) is missing"),
        ({"type": "map", "values": LINE}, 7, "field 'a' takes map, not a number"),
        (LINE, None, "field 'a' takes the record shop.Line, not null"),
        (
            [PLACED, CANCELLED],
            {"id": 7},
            r"field 'a' fits several types of its union \(shop.Placed, shop.Cancelled\); "
            r"write a pair with the name of one, as in \[\"shop.Placed\", …\]",
        ),
        ([PLACED, CANCELLED], ["shop.Cancelled", {"id": "Anna"}], "field 'a.id' takes long, not text"),
        (["bytes", DAY], "no base64!", "field 'a' takes bytes as base64 or date, not text"),
        ("float", -1e39, "field 'a' is a number that is too large for float"),
        ("double", 10**400, "field 'a' is a number that is too large for double"),
        ("long", 1.5, "field 'a' takes long, not a number with a fraction"),
        (PRICE, "1.505", "field 'a' has more digits than a decimal of 9, 2 after the point"),
        (PRICE, "NaN", "field 'a' has more digits than a decimal of 9, 2 after the point"),
        (PRICE, "1e9", "field 'a' has more digits than a decimal of 9, 2 after the point"),
        ({"type": "fixed", "name": "F", "size": 2}, "/w==", "field 'a' takes 2 bytes as base64, not 1"),
        ({"type": "map", "values": "long"}, {"Anna": ""}, r"field 'a\[…\]' takes long, not text"),
        (LINE, {"sku": "", "Anna!": ""}, "field 'a' has a field that is not known; the fields are sku"),
        (LINE, {"sku": "", "sku2": ""}, "there is no field 'a.sku2'; the fields are sku"),
    ],
)
def test_what_does_not_fit_is_named(kind: Any, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        fitting(record(kind))({"a": value})


def test_a_type_that_comes_again_is_known_by_its_name() -> None:
    schema = record(LINE, "shop.Line", ["null", "shop.Line"])
    value = {"a": {"sku": "1"}, "b": {"sku": "2"}, "c": {"sku": "3"}}
    assert fitting(schema)(value) == value


def test_a_field_with_a_default_may_be_missing() -> None:
    fields = [{"name": "note", "type": "string", "default": ""}]
    assert fitting(fastavro.parse_schema({"type": "record", "name": "Order", "fields": fields}))({}) == {}


def test_an_object_fits_a_record_or_a_map_only() -> None:
    with pytest.raises(ValueError, match="it takes string, not an object"):
        fitting("string")({"id": 1})
    union = fastavro.parse_schema([LINE, {"type": "map", "values": "long"}])
    assert fitting(union)({"id": 1}) == ("map", {"id": 1})


@pytest.mark.parametrize("value", [{"a": ["shop.Cancelled", {"id": 7}]}, {"a": {"id": 7, "why": "x"}}])
def test_a_record_of_a_union_is_written_as_the_one_that_is_meant(value: Any) -> None:
    schema = record([PLACED, CANCELLED])
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, fitting(schema)(value))
    stream.seek(0)
    read: Any = fastavro.schemaless_reader(stream, schema, None, return_record_name=True)
    assert read["a"][0] == "shop.Cancelled"
