"""Avro schemas: names are full names, references come first, and faults are told with their path."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.testing.registry.parsing import parse_avro
from awoke.testing.registry.refusal import Refusal
from tests.support.avro_documents import record

A = {"name": "a", "type": "int"}


def test_names_are_full_names() -> None:
    parsed = parse_avro(record({"name": "next", "type": ["null", "R"]}, namespace="shop"))
    assert parsed.root["name"] == "shop.R"
    assert parsed.root["fields"][0]["type"] == ["null", "shop.R"]
    assert set(parsed.names) == {"shop.R"}


def test_a_schema_knows_the_types_of_its_references() -> None:
    parsed = parse_avro(record({"name": "i", "type": "I"}), [record(A, name="I")])
    assert set(parsed.names) == {"R", "I"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("Order", "the type `Order` is not known; define it, or add a reference to its subject"),
        ({"type": "recordx"}, "the type `recordx` is not known; define it, or add a reference to its subject"),
        ({"type": "array"}, "an Avro type has no 'items'"),
        ({}, "an Avro type has no 'type'"),
        (5, "this is no Avro type"),
        ({"type": ["null"]}, "this is no Avro type"),
        (record(A, name=5), "this is no Avro type"),
        ({"type": "record", "fields": []}, '"name" is a required field'),
        (record({"name": "a", "type": "int", "default": "x"}), "Default value <x> must match schema type: int"),
        ({"type": "record", "name": "R"}, "/fields: a record needs a list of fields"),
        (record(A, A), "/fields/1: the record has two fields `a`"),
        (record(A, name="1R"), "/: `1R` is no name: letters, digits and _ only"),
        (record({"name": "a-b", "type": "int"}), "/fields/0: `a-b` is no name: letters, digits and _ only"),
        (["int", ["null"]], "/1: a union must not hold a union"),
        (["int", "int"], "/1: the union has two branches `int`"),
        (record({"name": "a", "type": [{"type": "array", "items": "int"}] * 2}), "/fields/0/type/1: the union has two"),
        ({"type": "array", "items": ["int", "int"]}, "/items/1: the union has two branches `int`"),
        ({"type": "map", "values": ["int", "int"]}, "/values/1: the union has two branches `int`"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "All symbols in an enum must be unique"),
        ({"type": "enum", "name": "E", "symbols": "AB"}, "/symbols: an enum needs a list of symbols"),
        ({"type": "enum", "name": "E", "symbols": ["A-B"]}, "Every symbol must match"),
        ({"type": "fixed", "name": "F", "size": "x"}, "/size: the size must be a number of bytes"),
    ],
)
def test_a_fault_is_refused_with_its_reason(schema: Any, expected: str) -> None:
    with pytest.raises(Refusal) as raised:
        parse_avro(schema)
    assert raised.value.status == 422
    assert raised.value.code == 42201
    assert expected in raised.value.message


def test_two_branches_of_a_union_may_be_named_types_of_different_names() -> None:
    parse_avro([record(A), record(A, name="S"), {"type": "fixed", "name": "F", "size": 1}])
