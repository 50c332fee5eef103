"""Avro, by fastavro: schemas come from the registry, and values are of the route's type.

A message is read by the schema that it was written with, resolved to the reader's schema as Avro's specification says:
fields that only one side has are left out, or get their default.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import avro_types
from awoke.payloads.formats.avro_bounds import walk_of
from awoke.payloads.formats.avro_reader import (
    is_untyped,
    named_converter,
    needs_names,
    plain_converter,
    with_names_of_records,
)
from awoke.payloads.formats.avro_resolution import AvroSchema
from awoke.payloads.formats.avro_scalars import unqualified
from awoke.payloads.formats.avro_writer import writer_for
from awoke.payloads.formats.class_fields import class_of, has_named_union, reads_by_own_code
from awoke.payloads.formats.format import Description, Direction, Encode, Payload, proving
from awoke.payloads.formats.model_round_trips import check_round_trip, models_in, round_trip
from awoke.payloads.formats.registry_formats import Read, RegistryFormat, check_kind
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema, Schema, SubjectName, topic_name
from awoke.payloads.registry.schemas import Schemas, Wanted
from awoke.preconditions.extras import needs

AVRO = "application/vnd.apache.avro+json;version=1.9.0"
"""The media type of an Avro schema."""


class Own(NamedTuple):
    """The schema of one class, as the program has it."""

    document: Any = None
    """None where values are dicts: the writer's schema is the reader's, too."""
    text: str | None = None
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

    def __init__(
        self,
        value_type: Any,
        own: Mapping[Any, Own],
        subject: SubjectName,
        wire: wire_format.Wire,
        direction: Direction = "both",
    ) -> None:
        super().__init__(value_type, subject, wire, direction)
        self._own = own
        """The schema of each class; of None where values are dicts."""
        self._names = {} if any(map(is_untyped, own)) else avro_types.named_classes(value_type)
        is_sure = all(round_trip(each).is_sure for each in models_in(value_type))
        self._is_sure = is_sure and not any(map(reads_by_own_code, own))

    def description(self) -> Description:
        """Returns the schemas of the classes."""
        own = [json.loads(each.text) for each in self._own.values() if each.text is not None]
        return Description("application/avro", own[0] if len(own) == 1 else own or None, AVRO)

    def reader(self, registered: RegisteredSchema, schemas: Schemas) -> Read:
        """Returns the function that reads Avro of this schema, resolved to the schema of the format's type."""
        writer = parsed(registered, schemas)
        walk = walk_of(writer.root, writer.names)
        kind, own = self._target(writer.root)
        reader = own.parsed
        if own.document == json.loads(registered.schema.text):
            reader = None  # fastavro compares them for each message otherwise.
        options: dict[str, Any] = {}
        if needs_names(kind, writer):
            options = {"return_record_name": True, "return_record_name_override": is_untyped(kind)}
        convert: Read | None = None
        if is_untyped(kind):
            if options:
                convert = functools.partial(with_names_of_records, types=writer.names)
        elif options:
            # What the reader's schema adds to the class is left out here: fastavro mixes up names when it resolves.
            reader, convert = None, named_converter(kind, writer)
        else:
            convert = plain_converter(kind)
        read, stream = needs("fastavro", "registry").schemaless_reader, io.BytesIO
        read = functools.partial(read, **options) if options else read

        def read_payload(payload: bytes) -> Any:
            if walk is not None:
                walk.check(payload)
            try:
                found = read(stream(payload), writer.root, reader)
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
        write = writer_for(parsed(registered, schemas), self._names)
        before, headers = self.framing(registered, part)

        def encode(value: Any) -> Payload:
            out = bytearray(before)
            write(out, value)
            return bytes(out), headers

        if self._direction == "write" or self._is_sure:
            return encode
        return proving(encode, self.reader(registered, schemas), "Avro", len(before))

    def expected(self, topic: str, part: Part) -> Iterable[Wanted]:
        """Returns the schemas of the classes."""
        for own in self._own.values():
            if own.name is not None or self._subject is topic_name:
                yield Wanted(self._subject(topic, part, own.name), own.schema)

    def _own_of(self, value: Any) -> Own:
        if len(self._own) == 1:
            return next(iter(self._own.values()))
        kind = type(value)
        if kind not in self._own:
            generic = [own for each, own in self._own.items() if class_of(each) is kind]
            if len(generic) == 1:
                return generic[0]
            names = ", ".join(sorted(each.__qualname__ for each in self._own))
            raise EncodeError(f"a value of type {kind.__qualname__} is none of {names}")
        return self._own[kind]

    def _target(self, writer: Any) -> tuple[Any, Own]:
        """Returns the class to which a record is read, and the reader's schema."""
        if len(self._own) == 1:
            return next(iter(self._own.items()))
        name = str(writer.get("name") if isinstance(writer, dict) else writer)
        names = {own.name: (kind, own) for kind, own in self._own.items() if own.name is not None}
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
    direction: Direction = "both",
) -> AvroFormat:
    """Returns the format of values that are written as Avro, with schemas of the registry.

    `value_type` is a class, or a union of classes for a topic with several kinds of records. None: values are dicts,
    as fastavro reads and takes them. `schema` is the reader's own schema; left out, it is made of the type. What is
    sent is written by that schema where it is registered, or else by the subject's latest version. `subject` names
    the subject: `awoke.registry.topic_name`, `record_name` or `topic_record_name`. `wire` is the place of the id in
    what is sent; both places are read. `direction` is for a model of pydantic's that is not meant to read what it
    writes: `read` or `write`.

    Raises:
        ConfigError: The type has no Avro schema, or can't read what it writes; the schema is no Avro; fastavro is not
        installed.
    """
    kinds = avro_types.classes_in(value_type)
    if schema is not None and len(kinds) > 1:
        raise ConfigError("awoke.avro: schema= is the schema of one type, not of a union", "value")
    own = {kind: _own(kind, schema, namespace, direction) for kind in kinds}
    names = [each.name for each in own.values() if each.name is not None]
    if len(set(names)) < len(names):
        text = f"awoke.avro: two classes of the union are records of one name ({', '.join(sorted(names))})"
        raise ConfigError(f"{text}, by which they would be told apart; give the classes other names", "value")
    return AvroFormat(value_type, own, subject, wire, direction)


def _own(kind: Any, schema: str | dict[str, Any] | None, namespace: str | None, direction: Direction) -> Own:
    fastavro = needs("fastavro", "registry")
    try:
        if not is_untyped(kind):
            if not has_named_union(kind):
                plain_converter(kind)
            check_round_trip(kind, direction)
        if schema is None:
            if is_untyped(kind):
                return Own()
            schema = avro_types.schema_of(kind, namespace)
        document = json.loads(schema) if isinstance(schema, str) else schema
        text = schema if isinstance(schema, str) else json.dumps(schema)
        named: dict[str, Any] = {}
        found = AvroSchema(fastavro.parse_schema(document, named_schemas=named), named)
        if not is_untyped(kind):
            if has_named_union(kind):
                named_converter(kind, found)
            writer_for(found, avro_types.named_classes(kind))
        return Own(document, text, found.root)
    except (TypeError, ValueError, KeyError, fastavro.schema.SchemaParseException) as error:
        raise ConfigError(f"awoke.avro({getattr(kind, '__qualname__', kind)}): {error}", "value") from None


def parsed(registered: RegisteredSchema, schemas: Schemas) -> AvroSchema:
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
        return AvroSchema(fastavro.parse_schema(json.loads(schema.text), named_schemas=named), named)
    except fastavro.schema.SchemaParseException as error:
        raise ValueError(f"schema {registered.id} of the registry can't be used: {error}") from None


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
