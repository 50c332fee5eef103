"""JSON schemas: those that the meta-schema refuses, and parts that a `$ref` points to."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.testing.registry.parsing import Located, parse_json, resolve
from awoke.testing.registry.refusal import Refusal

DOCUMENT = {
    "definitions": {"a/b": {"type": "null"}, "list": [{"type": "string"}], "loop": {"$ref": "#/definitions/loop"}}
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ([], "a JSON schema is an object, true or false"),
        ({"type": "objectx"}, "/type: 'objectx' is not valid"),
        ({"properties": {"a": {"minimum": "x"}}}, "/properties/a/minimum: 'x' is not of type 'number'"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": 5}, "/prefixItems: 5 is not"),
    ],
)
def test_a_fault_is_refused_with_its_path(schema: Any, expected: str) -> None:
    with pytest.raises(Refusal) as raised:
        parse_json(schema, {})
    assert raised.value.code == 42201
    assert expected in raised.value.message


def test_a_schema_without_a_version_is_of_draft_7() -> None:
    assert parse_json({"items": [{"type": "null"}], "prefixItems": 5}, {}).root["prefixItems"] == 5


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("#", DOCUMENT),
        ("#/definitions/a~1b", {"type": "null"}),
        ("#/definitions/a~1b/type", "null"),
        ("#/definitions/list/0", {"type": "string"}),
        ("other.json", DOCUMENT),
        ("other.json#/definitions/list/0", {"type": "string"}),
    ],
)
def test_a_ref_leads_to_a_part(pointer: str, expected: Any) -> None:
    found = resolve(Located({"$ref": pointer}, DOCUMENT), {"other.json": DOCUMENT})
    assert found == Located(expected, DOCUMENT)


@pytest.mark.parametrize(
    "pointer",
    [
        "#/definitions/none",
        "#/definitions/list/7",
        "#/definitions/list/x",
        "#anchor",
        "else.json",
        "#/definitions/loop",
    ],
)
def test_a_ref_to_nothing_has_no_part(pointer: str) -> None:
    assert resolve(Located({"$ref": pointer}, DOCUMENT), {}) is None
