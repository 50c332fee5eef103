"""Small messages whose decoding would kill the process, or hold the GIL for long, are decode errors like any other."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import awoke
from awoke.payloads.formats.format import reader_of
from awoke.payloads.formats.json_bounds import are_unique
from awoke.payloads.registry import Schema
from tests.support.known_schemas import KnownSchemas

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
EMPTY = {"type": "record", "name": "Empty", "fields": [{"name": f"f{n}", "type": "null"} for n in range(100)]}


def number(value: int) -> bytes:
    """Returns a number as Avro writes it."""
    bits, found = (value << 1) ^ (value >> 63), bytearray()
    while bits > 0x7F:
        found.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes([*found, bits])


def record(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}


def read(kind: str, schema: Any, payload: bytes, *imported: Any) -> Any:
    known = Schema(json.dumps(schema), kind)
    schemas = KnownSchemas(known)
    schemas.referred[known] = {name: Schema(json.dumps(each), kind) for name, each in imported}
    form = awoke.avro() if kind == "AVRO" else awoke.json_schema()
    return reader_of(form, "orders", "value", schemas)(b"\0" + (1).to_bytes(4) + payload, [])


@pytest.mark.parametrize(
    ("schema", "payload", "words"),
    [
        (NODE, (number(7) + number(1)) * 15_000 + number(7) + number(0), "nested more than 256"),
        (record({"type": "array", "items": NODE}), b"\x02" + (number(7) + number(1)) * 15_000, "nested more than 256"),
        (record(DECIMAL), number(100_000) + b"\x01" * 100_000, "more digits"),
        (
            record(["null", {"type": "map", "values": DECIMAL}]),
            b"\x02\x02\x02k" + number(5_000) + b"1" * 5_000,
            "digits",
        ),
        (record({"type": "array", "items": "null"}), number(1 << 40) + b"\0", "more parts than bytes"),
        (record({"type": "array", "items": EMPTY}), number(1 << 40) + b"\0", "more parts than bytes"),
        (record({"type": "array", "items": record("null") | {"name": "N"}}), number(-(1 << 62)) + b"\0\0", "parts"),
        (record({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}), number(1 << 40), "parts"),
    ],
)
def test_a_small_message_of_avro_is_refused_before_it_is_decoded(schema: Any, payload: bytes, words: str) -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match=words):
        read("AVRO", schema, payload)
    assert time.process_time() - began_s < 2


def test_ordinary_values_of_such_schemas_are_read() -> None:
    assert read("AVRO", NODE, number(7) + number(1) + number(8) + number(0))["next"]["v"] == 8
    assert str(read("AVRO", record(DECIMAL), number(2) + b"\x01\x00")["x"]) == "2.56"
    assert read("AVRO", record({"type": "array", "items": "null"}), number(3) + b"\0") == {"x": [None] * 3}
    assert read("AVRO", record("Node"), number(7) + number(0), ("node", NODE)) == {"x": {"v": 7, "next": None}}
    deep: Any = "int"
    for level in range(300):
        deep = {"type": "record", "name": f"R{level}", "fields": [{"name": "x", "type": deep}]}
    with pytest.raises(ValueError, match="the schema is nested more than 256"):
        read("AVRO", deep, b"\0")


NEWEST = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (TEXT, {"x": "a" * 5_000 + "!"}, "breaks the rule 'pattern'"),
        ({"pattern": "^(a|a)*$"}, "a" * 5_000 + "!", "breaks the rule 'pattern'"),
        ({"pattern": "^(?=a)(a+)+$"}, "a" * 100 + "!", "may need time without end"),
        ({"pattern": "^(?=a)a*a*a*a*a*a*b$"}, "a" * 100, "may need time without end"),
        ({"pattern": "^(?=a).*$"}, "a" * 5_000, "too long for the pattern"),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 5_000 + "!": 1}, "additional"),
        ({"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}, {"a" * 100 + "!": 1}, "without end"),
        (
            {"$schema": NEWEST, "patternProperties": {"^a+$": {}}, "unevaluatedProperties": False},
            {"a" * 5_000 + "!": 1},
            "more than 200",
        ),
        ({"uniqueItems": True}, [{"n": n} for n in range(20_000)] + [{"n": 5}], "breaks the rule 'uniqueItems'"),
        ({"items": {"type": "integer"}}, ["x"] * 100_000, "breaks the rule 'type'"),
    ],
)
def test_a_small_message_of_json_takes_no_long_time(schema: Any, value: Any, words: str) -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match=words):
        read("JSON", schema, json.dumps(value).encode())
    assert time.process_time() - began_s < 5


DRAFT_4 = "http://json-schema.org/draft-04/schema#"
TWICE = [{"n": n} for n in range(20_000)] + [{"n": 5}]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$schema": NEWEST, "properties": {"x": {"$schema": DRAFT_4, "uniqueItems": True}}}, {"x": TWICE}),
        ({"$schema": NEWEST, "uniqueItems": True, "properties": {"x": {"$ref": "#"}}}, {"x": TWICE}),
        ({"$schema": NEWEST, "pattern": "^(a+)+$", "properties": {"x": {"$ref": "#"}}}, {"x": "a" * 5_000 + "!"}),
        (
            {"$schema": DRAFT_4, "properties": {"x": {"$schema": NEWEST, "pattern": "^(a+)+$"}}},
            {"x": "a" * 5_000 + "!"},
        ),
    ],
    ids=["another draft", "the schema in itself", "a pattern", "a newer draft"],
)
def test_parts_of_a_schema_with_a_draft_of_their_own_are_bounded_as_well(schema: Any, value: Any) -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match=r"breaks the rule .(uniqueItems|pattern)"):
        read("JSON", schema, json.dumps(value).encode())
    assert time.process_time() - began_s < 5


@pytest.mark.parametrize(
    ("schema", "value", "is_right"),
    [
        ({"uniqueItems": True}, [1, True, "1", None, [1], {"a": 1}, 0, False, {"a": True}], True),
        ({"uniqueItems": True}, [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}], False),
        ({"uniqueItems": False}, [1, 1], True),
        ({"uniqueItems": True}, "aa", True),
        ({"pattern": "b+"}, "abc", True),
        ({"pattern": "^(?!x)\\w+$"}, "abc", True),
        ({"pattern": "^(?!x)\\w+$"}, "xbc", False),
        ({"pattern": "^([a-z0-9-]+\\.)+[a-z]{2,}$"}, "a.b.example", True),
        ({"pattern": "a"}, 5, True),
        ({"patternProperties": {"^i_": {"type": "integer"}}}, {"i_a": 1, "s": "x"}, True),
        ({"patternProperties": {"^i_": {"type": "integer"}}}, {"i_a": "x"}, False),
        ({"patternProperties": {"^i_": {}}, "additionalProperties": {"type": "string"}}, {"i_a": 1, "b": "x"}, True),
        ({"patternProperties": {"^i_": {}}, "additionalProperties": {"type": "string"}}, {"i_a": 1, "b": 2}, False),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, False),
    ],
)
def test_the_bounded_rules_are_those_of_json_schema(schema: Any, value: Any, is_right: bool) -> None:
    for draft in ("http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2020-12/schema"):
        said = {"$schema": draft, **schema}
        if is_right:
            assert read("JSON", said, json.dumps(value).encode()) == value
        else:
            with pytest.raises(ValueError, match="breaks the rule"):
                read("JSON", said, json.dumps(value).encode())


MIXED = record(["null", NODE, {"type": "array", "items": DECIMAL}, {"type": "map", "values": EMPTY}])


@pytest.mark.parametrize("schema", [NODE, MIXED], ids=["a list", "a union"])
def test_fuzz_any_bytes_of_avro_are_read_or_refused(schema: Any) -> None:
    known = KnownSchemas(Schema(json.dumps(schema), "AVRO"))
    decode = reader_of(awoke.avro(), "orders", "value", known)

    @given(st.binary(max_size=2_000) | st.lists(st.integers(-3, 3).map(number)).map(b"".join))
    def is_harmless(payload: bytes) -> None:
        with contextlib.suppress(ValueError):
            decode(b"\0" + (1).to_bytes(4) + payload, [])

    is_harmless()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    )
)
def test_fuzz_items_are_the_same_as_jsonschema_says(value: Any) -> None:
    twins = json.loads(json.dumps([value, value]))
    assert not are_unique(twins)
    assert are_unique([value, [value], {"a": value}])
