"""Kinds of schemas: what each accepts, when two schemas are the same, and which changes are compatible."""

from __future__ import annotations

import json

import pytest

from awoke.payloads.registry.schema import Reference, Schema
from awoke.testing.registry.kinds import canonical, incompatibilities, parse
from awoke.testing.registry.refusal import Refusal

INNER = Schema('{"type": "record", "name": "I", "fields": []}')
OUTER = Schema('{"type": "record", "name": "O", "fields": [{"name": "i", "type": "I"}]}')
PROTO = Schema('syntax = "proto3"; message M {}', "PROTOBUF")


def test_a_schema_is_parsed_with_its_references() -> None:
    assert parse(OUTER, {"I": INNER})
    inner = Schema('{"type": "null"}', "JSON")
    assert parse(Schema('{"$ref": "inner.json"}', "JSON"), {"inner.json": inner})
    assert parse(PROTO, {}) == PROTO.text


@pytest.mark.parametrize(
    ("schema", "referenced", "expected"),
    [
        (Schema("{}", "XML"), {}, "`XML` is no kind of schema; the kinds are AVRO, JSON, PROTOBUF"),
        (Schema(" "), {}, "the text is empty"),
        (Schema(" ", "PROTOBUF"), {}, "the text is empty"),
        (Schema("{"), {}, "the text is no JSON"),
        (Schema("{", "JSON"), {}, "the text is no JSON"),
        (OUTER, {}, "the type `I` is not known"),
        (OUTER, {"I": Schema("{}", "JSON")}, "the reference `I` is of the kind JSON, and not AVRO"),
    ],
)
def test_a_faulty_schema_is_refused(schema: Schema, referenced: dict[str, Schema], expected: str) -> None:
    with pytest.raises(Refusal) as raised:
        parse(schema, referenced)
    assert raised.value.code == 42201
    assert expected in raised.value.message


def test_blanks_and_the_order_of_keys_do_not_count() -> None:
    turned = json.dumps(dict(reversed(json.loads(INNER.text).items())), indent=2)
    assert canonical(Schema(turned)) == canonical(INNER)
    assert canonical(Schema(f" {PROTO.text}\n", "PROTOBUF")) == canonical(PROTO)


def test_the_kind_and_the_references_count() -> None:
    reference = Reference("I", "inner", 1)
    schemas = [Schema('{"a": 1}'), Schema('{"a": 1}', "JSON"), Schema('{"a": 1}', references=(reference,))]
    assert len({canonical(each) for each in schemas}) == 3
    assert canonical(Schema("1")) != canonical(Schema("true"))


def test_each_change_of_protobuf_is_compatible() -> None:
    assert list(incompatibilities(parse(PROTO, {}), "message Other {}")) == []


def test_two_kinds_are_never_compatible() -> None:
    avro, json_schema = parse(Schema('"int"'), {}), parse(Schema('{"type": "integer"}', "JSON"), {})
    assert list(incompatibilities(avro, avro)) == list(incompatibilities(json_schema, json_schema)) == []
    assert list(incompatibilities(avro, json_schema)) == ["/: the reader and the writer are schemas of different kinds"]
