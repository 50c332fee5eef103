"""JSON with a registry: typed values, validated dicts, and the schemas of types."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pydantic
import pytest

import awoke
from awoke.payloads.formats.json_schema import schema_of
from awoke.payloads.registry import Reference, Schema
from awoke.payloads.registry.schema import Part
from tests.support.known_schemas import KnownSchemas

VALUES: tuple[str, Part] = ("orders", "value")


class Order(msgspec.Struct):
    id: int
    note: str = ""


class Model(pydantic.BaseModel):
    id: int


def of_json(schema: Any) -> Schema:
    return Schema(json.dumps(schema), "JSON")


STRICT = of_json({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})


def decoded(form: awoke.Format, schemas: KnownSchemas, data: bytes, headers: Any = ()) -> Any:
    decode: Any = form.decoder(*VALUES, schemas)
    return decode(data, list(headers))


@pytest.mark.parametrize("value", [Order(7, "x"), Model(id=7)], ids=["msgspec", "pydantic"])
def test_a_value_goes_there_and_back(value: Any) -> None:
    schemas, form = KnownSchemas(), awoke.json_schema(type(value))
    data, headers = form.encoder(*VALUES, schemas)(value)
    assert (data[:6], headers) == (b"\0\0\0\0\1{", ())
    assert decoded(form, schemas, data) == value
    assert json.loads(schemas.known[0].text)["title"] == type(value).__name__


def test_a_header_leaves_the_payload_bare() -> None:
    schemas, form = KnownSchemas(), awoke.json_schema(Order, wire="header")
    data, headers = form.encoder(*VALUES, schemas)(Order(7))
    assert data == b'{"id":7,"note":""}'
    assert decoded(form, schemas, data, headers) == Order(7)


def test_dicts_are_validated_by_the_schema_of_the_message() -> None:
    schemas, form = KnownSchemas(STRICT), awoke.json_schema()
    assert decoded(form, schemas, b'\0\0\0\0\1{"id": 7}') == {"id": 7}
    for wrong in (b'{"id": "secret"}', b"{}"):
        with pytest.raises(ValueError, match=r"breaks the rule '(type|required)' of schema 1 - at `\$") as caught:
            decoded(form, schemas, b"\0\0\0\0\1" + wrong)
        assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="breaks the rule"):
        form.encoder(*VALUES, schemas)({"id": "x"})


def test_a_typed_value_is_validated_where_the_registry_has_another_schema() -> None:
    schemas = KnownSchemas(of_json({"type": "object", "properties": {"id": {"maximum": 5}}}))
    encode = awoke.json_schema(Order).encoder(*VALUES, schemas)
    assert encode(Order(5))[0] == b'\0\0\0\0\1{"id":5,"note":""}'
    with pytest.raises(ValueError, match="rule 'maximum'"):
        encode(Order(6))


def test_a_schema_may_refer_to_another_which_refers_to_a_third() -> None:
    unit = of_json({"enum": ["kg"]})
    line = Schema(
        '{"required": ["sku"], "properties": {"unit": {"$ref": "unit.json"}}}',
        "JSON",
        (Reference("unit.json", "unit", 1),),
    )
    order = Schema('{"properties": {"line": {"$ref": "line.json"}}}', "JSON", (Reference("line.json", "line", 1),))
    schemas = KnownSchemas(order)
    schemas.referred = {order: {"unit.json": unit, "line.json": line}}
    value = {"line": {"sku": 1, "unit": "kg"}}
    assert decoded(awoke.json_schema(), schemas, b"\0\0\0\0\1" + json.dumps(value).encode()) == value
    for wrong, place in ((b'{"line": {}}', r"`\$\.line`"), (b'{"line": {"sku": 1, "unit": "g"}}', r"`\$\.line\.unit`")):
        with pytest.raises(ValueError, match=place):
            decoded(awoke.json_schema(), schemas, b"\0\0\0\0\1" + wrong)


def test_the_schema_of_a_type_has_its_name_as_title() -> None:
    made = schema_of(Order)
    assert made["title"] == "Order"
    assert made["$defs"]["Order"]["required"] == ["id"]


def test_what_is_no_schema_or_no_type_is_one_clear_error() -> None:
    for options in ({"schema": {"type": "intger"}}, {"schema": "{"}, {"value_type": type("Plain", (), {})}):
        with pytest.raises(awoke.ConfigError, match=r"awoke\.json_schema"):
            awoke.json_schema(**options)


def test_a_schema_of_another_kind_is_refused() -> None:
    for form in (awoke.json_schema(Order), awoke.json_schema()):
        with pytest.raises(ValueError, match="is AVRO, not JSON"):
            decoded(form, KnownSchemas(Schema('"string"')), b"\0\0\0\0\1{}")
