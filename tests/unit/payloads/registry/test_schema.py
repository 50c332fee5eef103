"""Schemas are values: equal and hashable by their content."""

from __future__ import annotations

from awoke.payloads.registry import Reference, RegisteredSchema, Schema


def test_schemas_of_the_same_content_are_one_key() -> None:
    one, other = (Schema("{}", "JSON", (Reference("a", "a-value", 1),)) for _ in range(2))
    assert {one: 1, other: 2} == {one: 2}
    assert len({RegisteredSchema(one, 1), RegisteredSchema(other, 1), RegisteredSchema(other, 2)}) == 2


def test_a_schema_is_avro_without_references_by_default() -> None:
    assert Schema('"int"') == Schema('"int"', "AVRO", ())
    assert Schema('"int"') != Schema('"int"', "JSON")
