"""Compatibility of JSON schemas: each keyword, the paths of messages, and jsonschema as a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awoke.testing.registry.json_rules import incompatibilities
from awoke.testing.registry.libraries import library
from awoke.testing.registry.parsing import JsonSchema, parse_json

Draft7Validator = library("jsonschema").Draft7Validator

INTEGER, NUMBER, STRING, NULL = ({"type": each} for each in ("integer", "number", "string", "null"))


def one(schema: Any) -> dict[str, Any]:
    """Returns the schema of an object with one property `a`."""
    return {"type": "object", "properties": {"a": schema}}


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "additionalProperties": False}


def two(a: Any, b: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": a, "b": b}}


def tree(value: Any) -> dict[str, Any]:
    node = {"type": "object", "properties": {"value": value, "next": {"$ref": "#/definitions/node"}}}
    return {"$ref": "#/definitions/node", "definitions": {"node": node}}


def reasons(reader: Any, writer: Any) -> list[str]:
    return incompatibilities(parse_json(reader, {}), parse_json(writer, {}))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (INTEGER, True),
        (False, INTEGER),
        (INTEGER, NUMBER),
        (STRING, {"type": ["string", "null"]}),
        (one(INTEGER), one({**NUMBER, "title": "A", "description": "text", "default": 1})),
        ({**one(INTEGER), "required": ["a"]}, one(INTEGER)),
        (closed(one(INTEGER)), closed(two(INTEGER, STRING))),
        (two(INTEGER, STRING), one(INTEGER)),
        (closed(one(INTEGER)), one(INTEGER)),
        ({**one(INTEGER), "additionalProperties": INTEGER}, {**one(INTEGER), "additionalProperties": NUMBER}),
        ({"enum": ["x"]}, {"enum": ["x", "y"]}),
        ({"const": "x"}, {"enum": ["x", "y"]}),
        ({"enum": ["x", 1]}, {"type": ["string", "integer"]}),
        ({"enum": ["x", 1.0]}, {"type": ["string", "integer"]}),
        ({"type": "array", "items": INTEGER}, {"type": "array", "items": NUMBER}),
        ({**INTEGER, "minimum": 5}, {**INTEGER, "minimum": 0}),
        ({**INTEGER, "maximum": 5}, {**INTEGER, "maximum": 9}),
        ({**STRING, "minLength": 1}, {**STRING, "minLength": 0}),
        (STRING, {**STRING, "minLength": 0}),
        ({**STRING, "pattern": "^x"}, STRING),
        ({**STRING, "format": "date"}, STRING),
        (STRING, {**STRING, "minimum": 5, "uniqueItems": True}),
        ({**NUMBER, "multipleOf": 0.4}, {**NUMBER, "multipleOf": 0.1}),
        ({"type": "array", "uniqueItems": True}, {"type": "array", "uniqueItems": False}),
        (STRING, {"anyOf": [STRING, NULL]}),
        ({"anyOf": [STRING, NULL]}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}),
        ({"anyOf": [STRING, NULL]}, {"anyOf": [NULL, INTEGER, STRING]}),
        ({"oneOf": [STRING]}, {"oneOf": [STRING, NULL]}),
        ({"anyOf": [True]}, {"anyOf": [True, NULL]}),
        (tree(INTEGER), tree(NUMBER)),
        (one({"not": STRING}), one({"not": STRING})),
        ({"$ref": "other.json"}, {"$ref": "other.json"}),
        (one({"$ref": "other.json"}), {**one({"$ref": "other.json"}), "title": "A"}),
        ({**one(INTEGER), "patternProperties": {"^x": STRING}, "additionalProperties": False},) * 2,
        (
            closed({"type": "object", "patternProperties": {"^x": STRING}}),
            closed({"type": "object", "patternProperties": {"^x": STRING}, "properties": {"x1": STRING}}),
        ),
    ],
)
def test_a_reader_accepts_all_documents_of_a_compatible_writer(writer: Any, reader: Any) -> None:
    assert reasons(reader, writer) == []


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (NUMBER, INTEGER, "/type: the reader refuses `number`, which the writer may send"),
        (INTEGER, False, "/: the reader allows no value, the writer may send one"),
        ({"enum": ["x", 1]}, STRING, "/type: the reader refuses `integer`, which the writer may send"),
        (
            one(INTEGER),
            {**one(INTEGER), "required": ["a"]},
            "/required: the reader requires the property `a`, which the writer may leave out",
        ),
        (
            one(INTEGER),
            two(INTEGER, STRING),
            "/properties/b: the reader restricts the property `b`, which the writer may send with any value;"
            " close the writer with additionalProperties: false",
        ),
        (
            closed(two(INTEGER, STRING)),
            closed(one(INTEGER)),
            "/additionalProperties: the reader does not allow the property `b`, which the writer may send",
        ),
        (
            one(INTEGER),
            closed(one(INTEGER)),
            "/additionalProperties: the reader allows no other properties, the writer may send some",
        ),
        ({"enum": ["x", "y"]}, {"enum": ["x"]}, '/enum: the reader refuses `"y"`, which the writer may send'),
        (STRING, {**STRING, "enum": ["x"]}, "/enum: the reader allows only certain values, the writer may send others"),
        (STRING, {**STRING, "const": "x"}, "/const: the reader allows only certain values, the writer may send others"),
        (one(one(NUMBER)), one(one(INTEGER)), "/properties/a/properties/a/type: the reader refuses `number`"),
        ({"type": "array"}, {"type": "array", "items": STRING}, "/items/type: the reader refuses `array`, `boolean`"),
        (
            {"type": "array", "items": [STRING]},
            {"type": "array", "items": [INTEGER]},
            "/items: lists of items differ, and this registry has no rule for them",
        ),
        ({**INTEGER, "minimum": 0}, {**INTEGER, "minimum": 5}, "/minimum: the reader has `5`, the writer has `0`"),
        (INTEGER, {**INTEGER, "minimum": -5}, "/minimum: the reader has `-5`, the writer has none"),
        (INTEGER, {**INTEGER, "maximum": 5}, "/maximum: the reader has `5`, the writer has none"),
        ({**STRING, "maxLength": 9}, {**STRING, "maxLength": 5}, "/maxLength: the reader has `5`, the writer has `9`"),
        (STRING, {**STRING, "pattern": "^x"}, "/pattern: the reader has `^x`, the writer has none"),
        (NUMBER, {**NUMBER, "multipleOf": 2}, "/multipleOf: the reader has `2`, the writer has none"),
        ({"type": "array"}, {"type": "array", "uniqueItems": True}, "/uniqueItems: the reader has `True`"),
        (
            {"anyOf": [STRING, NULL]},
            {"anyOf": [STRING, INTEGER]},
            '/anyOf: no alternative of the reader accepts the writer\'s `{"type": "null"}`',
        ),
        ({"anyOf": [STRING, NULL]}, STRING, "/type: the reader refuses `null`, which the writer may send"),
        (one({"not": STRING}), one({"not": INTEGER}), "/properties/a/not: `not` differs, and this registry has no"),
        (STRING, {**STRING, "x-owner": "me"}, "/x-owner: `x-owner` differs, and this registry has no rule for it"),
        (tree(NUMBER), tree(INTEGER), "/properties/value/type: the reader refuses `number`, which the writer may send"),
        ({"$ref": "a.json"}, {"$ref": "b.json"}, "/: a $ref points to nothing that this registry knows"),
        (
            {"not": {"$ref": "#/definitions/a"}, "definitions": {"a": INTEGER}},
            {"not": {"$ref": "#/definitions/a"}, "definitions": {"a": NUMBER}},
            "/not: `not` holds a $ref, and this registry has no rule for it",
        ),
    ],
)
def test_a_reason_names_the_path_and_both_sides(writer: Any, reader: Any, expected: str) -> None:
    found = reasons(reader, writer)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_references_are_compared() -> None:
    def schema(other: Any) -> JsonSchema:
        references: Mapping[str, Any] = {"other.json": {"definitions": {"a/b c": other}}}
        return parse_json(one({"$ref": "other.json#/definitions/a~1b%20c"}), references)

    assert incompatibilities(schema(NUMBER), schema(INTEGER)) == []
    assert incompatibilities(schema(INTEGER), schema(NUMBER)) == [
        "/properties/a/type: the reader refuses `number`, which the writer may send"
    ]


def test_a_schema_that_holds_itself_in_its_alternatives_ends() -> None:
    writer = {"anyOf": [{"$ref": "#"}, NULL]}
    assert reasons({"anyOf": [NULL]}, writer) == []
    assert reasons(STRING, writer) == ["/type: the reader refuses `null`, which the writer may send"]


VALUES: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, 1, 5, -3, 2.5, "", "x", "xyz", [], [1], ["x", 2], {}])
DOCUMENTS = st.one_of(VALUES, st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "null", "array", ["string", "null"]]),
        "minimum": st.integers(-5, 5),
        "maximum": st.integers(-5, 5),
        "maxLength": st.integers(0, 3),
        "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=str),
    },
)
SCHEMAS = st.recursive(
    st.one_of(LEAVES, st.booleans()),
    lambda schemas: st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), schemas, max_size=2),
                "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
                "additionalProperties": schemas,
                "items": schemas,
            },
        ),
        st.fixed_dictionaries({"anyOf": st.lists(schemas, min_size=1, max_size=2)}, optional={"maximum": st.just(3)}),
    ),
    max_leaves=4,
)


@given(SCHEMAS, SCHEMAS, st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_a_compatible_reader_accepts_what_the_writer_accepts(writer: Any, reader: Any, documents: list[Any]) -> None:
    """The rules must not call compatible what a validator refuses; jsonschema is the judge."""
    if reasons(reader, writer):
        return
    for document in documents:
        if Draft7Validator(writer).is_valid(document):
            assert Draft7Validator(reader).is_valid(document)


@given(SCHEMAS)
def test_a_schema_is_compatible_with_itself(schema: Any) -> None:
    """Also where the comparison looks at each keyword, because an annotation differs."""
    assert reasons(schema, schema) == []
    if isinstance(schema, dict):
        assert reasons({**schema, "title": "A"}, schema) == []
