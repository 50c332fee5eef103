"""The kinds of schemas that the embedded schema registry keeps, and the compatibility of two schemas of one kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from awoke.payloads.formats import avro_resolution
from awoke.payloads.formats.avro_resolution import AvroSchema
from awoke.payloads.registry.schema import Schema
from awoke.testing.registry import json_rules
from awoke.testing.registry.parsing import JsonSchema, parse_avro, parse_json
from awoke.testing.registry.refusal import invalid_schema

KINDS = ("AVRO", "JSON", "PROTOBUF")


Parsed = AvroSchema | JsonSchema | str
"""A schema that was parsed; of Protobuf, its text."""


def parse(schema: Schema, referenced: Mapping[str, Schema]) -> Parsed:
    """Returns a schema parsed with its references, by their names, each after those that it refers to itself.

    A Protobuf schema is not parsed: any text that is not blank is one.

    Raises:
        Refusal: It is no schema of its kind (42201).
    """
    if schema.kind not in KINDS:
        raise invalid_schema(f"`{schema.kind}` is no kind of schema; the kinds are {', '.join(KINDS)}")
    if not schema.text.strip():
        raise invalid_schema("the text is empty")
    for name, each in referenced.items():
        if each.kind != schema.kind:
            raise invalid_schema(f"the reference `{name}` is of the kind {each.kind}, and not {schema.kind}")
    if schema.kind == "PROTOBUF":
        return schema.text
    document, others = read(schema.text), {name: read(each.text) for name, each in referenced.items()}
    if schema.kind == "AVRO":
        return parse_avro(document, others.values())
    return parse_json(document, others)


def read(text: str) -> Any:
    """Returns the JSON value of a text.

    Raises:
        Refusal: It is no JSON (42201).
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise invalid_schema(f"the text is no JSON: {error}") from None


def canonical(schema: Schema) -> tuple[object, ...]:
    """Returns a value that is equal for schemas that differ in blanks and in the order of JSON's keys only.

    The references count: the same text with other references is another schema.

    Raises:
        Refusal: It is no JSON (42201), and not of the kind PROTOBUF.
    """
    text = schema.text.strip()
    if schema.kind != "PROTOBUF":
        text = json.dumps(read(text), sort_keys=True, separators=(",", ":"))
    return (schema.kind, text, tuple((each.name, each.subject, each.version) for each in schema.references))


def incompatibilities(reader: Parsed, writer: Parsed) -> Sequence[str]:
    """Returns the reasons why a reader's schema is not compatible with a writer's; empty if it is.

    Every change of a Protobuf schema counts as compatible.
    """
    if isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema):
        return avro_resolution.incompatibilities(reader, writer)
    if isinstance(reader, JsonSchema) and isinstance(writer, JsonSchema):
        return json_rules.incompatibilities(reader, writer)
    if isinstance(reader, str) and isinstance(writer, str):
        return ()
    return ("/: the reader and the writer are schemas of different kinds",)
