"""Values of JSON in the schemas of a registry: what is written, and what does not fit."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from awoke.cli.encoding.documents import writer
from awoke.payloads.formats.protobuf import own_schema
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from tests.support.known_schemas import KnownSchemas
from tests.support.protobuf_classes import Amount

AVRO = Schema(json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}))
JSON = Schema(json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}}), "JSON")
PROTOBUF = own_schema(Amount.DESCRIPTOR.file)


def write(schema: Schema, text: str) -> bytes:
    def choose(places: Any) -> Any:
        return next(iter(places.items()))

    return writer(RegisteredSchema(schema, 6), KnownSchemas(), choose)(json.loads(text), text.encode())


@pytest.mark.parametrize(
    ("schema", "text", "payload"),
    [
        (AVRO, '{"id": 7}', b"\x0e"),
        (JSON, '{"id":  7}', b'{"id":  7}'),
        (PROTOBUF, '{"cents": 7}', b"\0\x08\7"),
    ],
    ids=["avro", "json", "protobuf"],
)
def test_a_value_follows_the_id_of_its_schema(schema: Schema, text: str, payload: bytes) -> None:
    assert write(schema, text) == b"\0\0\0\0\6" + payload


@pytest.mark.parametrize(
    ("schema", "text", "why"),
    [
        (AVRO, '{"id": "secret"}', "field 'id' takes long, not text"),
        (JSON, '{"id": "secret"}', r"it breaks the rule 'type' of schema 6 - at `\$.id`"),
        (PROTOBUF, '{"cents": "secret"}', "field 'cents' takes int64, not text"),
        (Schema("", "XML"), "7", "schema 6 of the registry is XML, not JSON"),
    ],
)
def test_a_value_that_does_not_fit_is_not_quoted(schema: Schema, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$") as refused:
        write(schema, text)
    assert refused.value.__context__ is None


@pytest.mark.parametrize(("text", "at"), [("'secret' on field id", " at field 'id'"), ("secret", "")])
def test_an_error_of_fastavro_is_not_quoted(monkeypatch: pytest.MonkeyPatch, text: str, at: str) -> None:
    def refuse(*_: Any) -> None:
        raise TypeError(text)

    monkeypatch.setattr(fastavro, "schemaless_writer", refuse)
    with pytest.raises(ValueError, match=f"^fastavro can't write it: TypeError{at}$") as refused:
        write(AVRO, '{"id": 7}')
    assert refused.value.__context__ is None
