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


def test_a_message_chooses_only_among_the_schemas_of_its_topic() -> None:
    anything, named = of_json({}), of_json({"title": "Order", "type": "object"})
    schemas, value = KnownSchemas(STRICT, anything, named), b'{"id": "x"}'
    schemas.of_subjects = {"orders-value": [STRICT], "free-value": [anything], "orders-Order": [named], "Free": [named]}
    event = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_type", b"x"), ("ce_source", b"/y")]
    for form in (awoke.json_schema(), awoke.cloudevents(awoke.json_schema())):
        with pytest.raises(ValueError, match=r"schema 2 is of another subject than 'orders-value'; .*accepts_other"):
            decoded(form, schemas, b"\0\0\0\0\2" + value, event)
    assert decoded(awoke.json_schema(), schemas, b"\0\0\0\0\3" + value) == {"id": "x"}
    assert decoded(awoke.json_schema(accepts_other_subjects=True), schemas, b"\0\0\0\0\2" + value) == {"id": "x"}
    schemas.of_subjects["orders-Order"] = []
    with pytest.raises(ValueError, match="than 'orders-value' or 'orders-Order'"):
        decoded(awoke.json_schema(), schemas, b"\0\0\0\0\3" + value)
    schemas.of_subjects["Order"] = [named]
    form = awoke.json_schema(subject=awoke.registry.record_name)
    assert decoded(form, schemas, b"\0\0\0\0\3" + value) == {"id": "x"}
    assert decoded(awoke.json_schema(Order), schemas, b'\0\0\0\0\2{"id":7}') == Order(7)


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


# References, as the registry's own libraries resolve them.

POSITIVE = {"type": "object", "properties": {"id": {"minimum": 1}}}
DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def referring(root: Any, **references: Any) -> KnownSchemas:
    """Returns a registry with a schema that refers to others by their names: `__` is a slash, `_` a point."""
    named = {name.replace("__", "/").replace("_", "."): each for name, each in references.items()}
    schema = Schema(json.dumps(root), "JSON", tuple(Reference(name, name, 1) for name in named))
    schemas = KnownSchemas(schema)
    schemas.referred = {schema: {name: of_json(each) for name, each in named.items()}}
    return schemas


def accepts(schemas: KnownSchemas, value: Any) -> bool:
    data = b"\0\0\0\0\1" + json.dumps(value).encode()
    try:
        decoded(awoke.json_schema(), schemas, data)
    except ValueError as error:
        problem = str(error)
    else:
        return True
    assert "breaks the rule" in problem
    return False


def with_line(reference: str, **more: Any) -> Any:
    return {"properties": {"line": {"$ref": reference}}, **more}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(
    ("root_id", "reference", "name", "line_id"),
    [
        (None, "line.json", "line_json", None),
        ("https://shop.test/schemas/order.json", "line.json", "line_json", None),
        ("https://shop.test/schemas/order.json", "parts/line.json", "parts__line_json", None),
        ("https://shop.test/order.json", "https://shop.test/line.json", "line_json", None),
        ("https://shop.test/order.json", "line.json", "other_json", "https://shop.test/line.json"),
        ("https://shop.test/order.json", "line.json#/definitions/line", "line_json", "https://shop.test/line.json"),
    ],
)
def test_a_reference_is_found_by_its_name_and_by_its_address(
    draft: str, root_id: str | None, reference: str, name: str, line_id: str | None
) -> None:
    word, head = "id" if draft == "4" else "$id", {"$schema": DRAFTS[draft]}
    line = {**head, **POSITIVE, "definitions": {"line": POSITIVE}, **({word: line_id} if line_id else {})}
    schemas = referring(with_line(reference, **head, **({word: root_id} if root_id else {})), **{name: line})
    assert accepts(schemas, {"line": {"id": 1}})
    assert not accepts(schemas, {"line": {"id": 0}})


def test_a_reference_of_a_reference_is_relative_to_the_one_that_has_it() -> None:
    line = {"$id": "https://shop.test/parts/line.json", "properties": {"unit": {"$ref": "unit.json"}}}
    root = with_line("parts/line.json", **{"$id": "https://shop.test/order.json"})
    schemas = referring(root, parts__line_json=line, unit_json={"enum": ["kg"]})
    assert accepts(schemas, {"line": {"unit": "kg"}})
    assert not accepts(schemas, {"line": {"unit": "g"}})


@pytest.mark.parametrize("draft", ["2019-09", "2020-12"])
def test_anchors_are_found_here_and_in_references(draft: str) -> None:
    head = {"$schema": DRAFTS[draft]}
    line = {**head, "$defs": {"it": {"$anchor": "line", **POSITIVE}}}
    for root in (with_line("line.json#line", **head), with_line("#line", **head, **{"$defs": line["$defs"]})):
        schemas = referring(root, line_json=line)
        assert accepts(schemas, {"line": {"id": 1}})
        assert not accepts(schemas, {"line": {"id": 0}})


def test_a_dynamic_reference_leads_to_the_outermost_anchor() -> None:
    tree = {
        "$schema": DRAFTS["2020-12"],
        "$id": "https://shop.test/tree.json",
        "$dynamicAnchor": "node",
        "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$schema": DRAFTS["2020-12"],
        "$id": "https://shop.test/strict-tree.json",
        "$dynamicAnchor": "node",
        "$ref": "tree.json",
        "unevaluatedProperties": False,
    }
    schemas = referring(strict, tree_json=tree)
    assert accepts(schemas, {"children": [{"children": []}]})
    assert not accepts(schemas, {"children": [{"daat": 1}]})


def test_a_schema_without_a_draft_is_of_draft_7_and_so_is_what_it_refers_to() -> None:
    pair = {"items": [{"type": "string"}, {"type": "integer"}]}
    assert not accepts(referring(pair), ["a", "b"])
    assert not accepts(referring(with_line("line.json"), line_json=pair), {"line": ["a", "b"]})


def test_a_reference_that_leads_nowhere_is_named() -> None:
    schemas = referring(with_line("line.json"))
    with pytest.raises(ValueError, match=r"schema 1 refers to 'line\.json', which is not there"):
        decoded(awoke.json_schema(), schemas, b'\0\0\0\0\1{"line": 1}')


@pytest.mark.parametrize("value", [{"id": 7}, Model(id=7)])
def test_a_value_of_another_class_is_refused(value: Any) -> None:
    with pytest.raises(awoke.EncodeError, match="is none of Order"):
        awoke.json_schema(Order).encoder(*VALUES, KnownSchemas())(value)
