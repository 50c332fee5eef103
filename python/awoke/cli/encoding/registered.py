"""Writes values of JSON by a schema that a registry has, of any kind."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from awoke.cli.encoding.avro_values import fitting
from awoke.cli.encoding.protobuf_values import Choose, protobuf_writer
from awoke.payloads.formats.avro import parsed
from awoke.payloads.formats.json_schema import validator
from awoke.payloads.formats.registry_formats import check_kind
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import RegisteredSchema
from awoke.payloads.registry.schemas import Schemas
from awoke.preconditions.extras import needs

Write = Callable[[Any, bytes], bytes]
"""Returns the bytes of a message for a value of JSON and its text: the id of the schema, and the value.

It raises ValueError where the value does not fit; the error names the field, and has no part of the value.
"""


def writer(registered: RegisteredSchema, schemas: Schemas, choose: Choose) -> Write:
    """Returns the function that writes values by a schema. `choose` picks the message of a Protobuf schema.

    Raises:
        ValueError: The schema can't be used. SchemaNeeded: One that it refers to is not loaded yet. ConfigError: A
        library is not installed.
    """
    if registered.schema.kind == "AVRO":
        return _avro_writer(registered, schemas)
    if registered.schema.kind != "PROTOBUF":
        return _json_writer(registered, schemas)
    write = protobuf_writer(registered, schemas, choose)
    return lambda value, text: write(value)


def _avro_writer(registered: RegisteredSchema, schemas: Schemas) -> Write:
    schema, write = parsed(registered, schemas), needs("fastavro", "registry").schemaless_writer
    fit, before = fitting(schema), wire_format.prefix(registered.id)

    def encode(value: Any, text: bytes) -> bytes:
        made, stream = fit(value), io.BytesIO()
        stream.write(before)
        try:
            write(stream, schema, made)
        except Exception as error:  # Of any type. Its text may quote the value, so the error is not kept.
            where = str(error).rpartition(" on field ")[2] if " on field " in str(error) else ""
            at = f" at field {where!r}" if where.isidentifier() else ""
            found = ValueError(f"fastavro can't write it: {type(error).__name__}{at}")
        else:
            return stream.getvalue()
        raise found

    return encode


def _json_writer(registered: RegisteredSchema, schemas: Schemas) -> Write:
    check_kind(registered, "JSON")
    validate, before = validator(registered, schemas), wire_format.prefix(registered.id)

    def encode(value: Any, text: bytes) -> bytes:
        validate(value)
        return before + text  # As it is written: numbers may have more digits than Python's.

    return encode
