"""Avro, by fastavro: schemas come from the registry, and values are of the route's type.

A message is read by the schema that it was written with, resolved to the reader's schema as Avro's specification says:
fields that only one side has are left out, or get their default.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import io
import json
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import avro_types, pydantic_models
from awoke.payloads.formats.avro_bounds import walk_of
from awoke.payloads.formats.format import Description, Encode, Payload
from awoke.payloads.formats.registry_formats import Read, RegistryFormat, check_kind
from awoke.payloads.formats.unquoted import unquoting
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema, Schema, SubjectName, topic_name
from awoke.payloads.registry.schemas import Schemas, Wanted
from awoke.preconditions.extras import needs

AVRO = "application/vnd.apache.avro+json;version=1.9.0"
"""The media type of an Avro schema."""

KEPT = (bytes, bytearray, datetime.datetime, datetime.date, datetime.time, uuid.UUID, decimal.Decimal)
"""The types that fastavro takes as they are, beside those of JSON."""


class Own(NamedTuple):
    """The schema of one class, as the program has it."""

    text: str | None = None
    """None where values are dicts: the writer's schema is the reader's, too."""
    parsed: Any = None
    """As fastavro takes it."""

    @property
    def name(self) -> str | None:
        """The record's full name; None for what is no record, and without a schema."""
        return self.parsed["name"] if isinstance(self.parsed, dict) and "name" in self.parsed else None

    @property
    def schema(self) -> Schema | None:
        """As the registry takes it."""
        return None if self.text is None else Schema(self.text, "AVRO")


class AvroFormat(RegistryFormat):
    """Avro with the schemas of a registry; made by `awoke.avro`."""

    def __init__(self, value_type: Any, own: Mapping[Any, Own], subject: SubjectName, wire: wire_format.Wire) -> None:
        super().__init__(value_type, subject, wire)
        self._own = own
        """The schema of each class; of None where values are dicts."""

    def description(self) -> Description:
        """Returns the schemas of the classes."""
        own = [json.loads(each.text) for each in self._own.values() if each.text is not None]
        return Description("application/avro", own[0] if len(own) == 1 else own or None, AVRO)

    def reader(self, registered: RegisteredSchema, schemas: Schemas) -> Read:
        """Returns the function that reads Avro of this schema, resolved to the schema of the format's type."""
        writer = parsed(registered, schemas)
        walk = walk_of(writer, named_in(writer))
        kind, own = self._target(writer)
        own = None if own == writer else own  # fastavro compares them for each message otherwise.
        read, convert, stream = needs("fastavro", "registry").schemaless_reader, converter(kind), io.BytesIO

        def read_payload(payload: bytes) -> Any:
            if walk is not None:
                walk.check(payload)
            try:
                found = read(stream(payload), writer, own)
            except Exception as error:
                unread = unreadable(error)
            else:
                return found if convert is None else convert(found)
            raise unread  # Outside of the block: an error that may have the value is not kept.

        return read_payload

    def writer(self, value: Any, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes Avro by the schema that the registry has for the value's class."""
        own = self._own_of(value)
        registered = schemas.for_writing(self._subject(topic, part, own.name), own.schema)
        schema, write = parsed(registered, schemas), needs("fastavro", "registry").schemaless_writer
        before, headers = self.framing(registered, part)
        if own.parsed is not None and own.parsed != schema:
            # The subject's latest version: fastavro would leave out a field that it does not have.
            write = functools.partial(write, strict_allow_default=True)

        def encode(value: Any) -> Payload:
            stream = io.BytesIO()
            stream.write(before)
            write(stream, schema, plain(value))
            return stream.getvalue(), headers

        return encode

    def expected(self, topic: str, part: Part) -> Iterable[Wanted]:
        """Returns the schemas of the classes."""
        for own in self._own.values():
            if own.name is not None or self._subject is topic_name:
                yield Wanted(self._subject(topic, part, own.name), own.schema)

    def _own_of(self, value: Any) -> Own:
        if len(self._own) == 1:
            return next(iter(self._own.values()))
        if type(value) not in self._own:
            names = ", ".join(sorted(each.__qualname__ for each in self._own))
            raise EncodeError(f"a value of type {type(value).__qualname__} is none of {names}")
        return self._own[type(value)]

    def _target(self, writer: Any) -> tuple[Any, Any]:
        """Returns the class to which a record is read, and the reader's schema."""
        if len(self._own) == 1:
            kind, own = next(iter(self._own.items()))
            return kind, own.parsed
        name = str(writer.get("name") if isinstance(writer, dict) else writer)
        names = {own.name: (kind, own.parsed) for kind, own in self._own.items() if own.name is not None}
        found = names.get(name) or {unqualified(each): to for each, to in names.items()}.get(unqualified(name))
        if found is None:
            raise ValueError(f"the message is a record {name!r}, which is none of {', '.join(sorted(names))}")
        return found


def avro(
    value_type: Any = None,
    *,
    schema: str | dict[str, Any] | None = None,
    namespace: str | None = None,
    subject: SubjectName = topic_name,
    wire: wire_format.Wire = "prefix",
) -> AvroFormat:
    """Returns the format of values that are written as Avro, with schemas of the registry.

    `value_type` is a class, or a union of classes for a topic with several kinds of records. None: values are dicts,
    as fastavro reads and takes them. `schema` is the reader's own schema; left out, it is made of the type. What is
    sent is written by that schema where it is registered, or else by the subject's latest version. `subject` names
    the subject: `awoke.registry.topic_name`, `record_name` or `topic_record_name`. `wire` is the place of the id in
    what is sent; both places are read.

    Raises:
        ConfigError: The type has no Avro schema; the schema is no Avro; fastavro is not installed.
    """
    kinds = avro_types.classes_in(value_type)
    if schema is not None and len(kinds) > 1:
        raise ConfigError("awoke.avro: schema= is the schema of one type, not of a union", "value")
    return AvroFormat(value_type, {kind: _own(kind, schema, namespace) for kind in kinds}, subject, wire)


def _own(kind: Any, schema: str | dict[str, Any] | None, namespace: str | None) -> Own:
    fastavro = needs("fastavro", "registry")
    try:
        converter(kind)
        if schema is None:
            if converter(kind) is None:
                return Own()
            schema = avro_types.schema_of(kind, namespace)
        raw = json.loads(schema) if isinstance(schema, str) else schema
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return Own(text, fastavro.parse_schema(raw))
    except (TypeError, ValueError, KeyError, fastavro.schema.SchemaParseException) as error:
        raise ConfigError(f"awoke.avro({getattr(kind, '__qualname__', kind)}): {error}", "value") from None


def parsed(registered: RegisteredSchema, schemas: Schemas) -> Any:
    """Returns a schema as fastavro takes it, with the schemas that it refers to.

    Raises:
        ValueError: It is no Avro. SchemaNeeded: One that it refers to is not loaded yet.
    """
    fastavro = needs("fastavro", "registry")
    check_kind(registered, "AVRO")
    schema = registered.schema
    named: dict[str, Any] = {}
    try:
        for each in schemas.references(schema).values():
            fastavro.parse_schema(json.loads(each.text), named_schemas=named)
        return fastavro.parse_schema(json.loads(schema.text), named_schemas=named)
    except fastavro.schema.SchemaParseException as error:
        raise ValueError(f"schema {registered.id} of the registry can't be used: {error}") from None


def named_in(schema: Any) -> Mapping[str, Any]:
    """Returns the named types that a schema consists of and refers to, as fastavro has noted them."""
    found = dict[str, Any]()
    for each in schema if isinstance(schema, list) else [schema]:
        found |= each.get("__named_schemas", {}) if isinstance(each, dict) else {}
    return found


def unreadable(error: Exception) -> ValueError:
    """Returns the error for a record that fastavro can't read. It does not have fastavro's text, which quotes values.

    The name of a field that the writer's schema lacks stays.
    """
    if isinstance(error, EOFError):
        return ValueError("the bytes end within the record")
    if type(error).__name__ == "SchemaResolutionError":
        text = str(error)
        more = f": {text}" if text.startswith("No default value for field ") else ""
        return ValueError(f"the schemas of writer and reader do not fit{more}")
    return ValueError(f"fastavro can't read the record: {type(error).__name__}")


def converter(kind: Any) -> Callable[[Any], Any] | None:
    """Returns the function that makes a class of what fastavro has read; None where values are dicts.

    Raises:
        TypeError: msgspec can't make values of this type.
    """
    if kind is None or kind in (dict, Any) or (typing.get_origin(kind) is dict and typing.get_args(kind)[0] is str):
        return None
    if pydantic_models.mentions_model(kind):
        return pydantic_models.converter_for(kind)
    msgspec.inspect.type_info(kind)
    return unquoting(functools.partial(msgspec.convert, type=kind), kind)


def plain(value: Any) -> Any:
    """Returns a value as fastavro takes it: dicts, lists and the types that Avro knows."""
    if type(value) is dict:
        return value
    if pydantic_models.is_model(type(value)):
        return pydantic_models.to_builtins(value)
    return msgspec.to_builtins(value, builtin_types=KEPT)


def unqualified(name: str) -> str:
    """Returns a record's name without its namespace."""
    return name.rpartition(".")[2]
