"""Protobuf whose schema is in a registry: messages of a class that protobuf has generated."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import protobuf_classes, protobuf_schemas
from awoke.payloads.formats.format import Description, Encode
from awoke.payloads.formats.registry_formats import Read, RegistryFormat, check_kind
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import Part, RegisteredSchema, Schema, SubjectName, topic_name
from awoke.payloads.registry.schemas import Imported, Schemas, Wanted

KNOWN = "google/protobuf/"
"""Files that every registry has."""


class ProtobufFormat(RegistryFormat):
    """Protobuf with the schemas of a registry; made by `awoke.protobuf`."""

    has_indexes = True

    def __init__(self, value_type: Any, subject: SubjectName, wire: wire_format.Wire) -> None:
        super().__init__(value_type, subject, wire)
        self._class = protobuf_classes.class_in(value_type)
        self._descriptor: Any = self._class.DESCRIPTOR

    def description(self) -> Description:
        """Returns the name of the message: its fields are in the registry."""
        return Description("application/protobuf", {"title": self._descriptor.full_name})

    def reader(self, registered: RegisteredSchema, schemas: Schemas) -> Read:
        """Returns the function that reads messages of the format's class."""
        check_kind(registered, "PROTOBUF")
        decode, name = self._class.FromString, self._descriptor.full_name
        places = protobuf_schemas.places(registered.schema.text)

        usual = [wire_format.write_indexes(indexes) for indexes, found in places.items() if found == name]
        begin = usual[0] if usual else b"none"

        def read(payload: bytes) -> Any:
            if payload.startswith(begin):  # As below, in less time.
                return decode(payload[len(begin) :])
            indexes, at = wire_format.read_indexes(payload)
            written = places.get(tuple(indexes))
            if written != name:
                raise ValueError(f"the message is a {written or 'message that its schema does not have'}, not a {name}")
            return decode(payload[at:])

        return read

    def writer(self, value: Any, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes messages of the format's class."""
        if not isinstance(value, self._class):
            raise EncodeError(f"a value of type {type(value).__qualname__} is no {self._class.__qualname__}")
        name = self._descriptor.full_name
        subject = self._subject(topic, part, name)
        registered = schemas.for_writing(subject, own_schema(self._descriptor.file), imports(self._descriptor.file))
        check_kind(registered, "PROTOBUF")
        places = protobuf_schemas.places(registered.schema.text)
        indexes = next((indexes for indexes, found in places.items() if found == name), None)
        if indexes is None:
            raise EncodeError(f"schema {registered.id} of subject {subject!r} has no message {name}")
        if (field := protobuf_schemas.misread_in(registered.schema.text, self._descriptor)) is not None:
            text = f"schema {registered.id} of subject {subject!r} reads the field {field} as another type"
            raise EncodeError(f"{text} than {self._class.__qualname__} writes; register the schema of the class")
        before, headers = self.framing(registered, part, wire_format.write_indexes(indexes))
        return lambda value: (before + protobuf_classes.encode(value), headers)

    def expected(self, topic: str, part: Part) -> Iterable[Wanted]:
        """Returns the schema of the class's file."""
        file, name = self._descriptor.file, self._descriptor.full_name
        yield Wanted(self._subject(topic, part, name), own_schema(file), imports(file))


def protobuf(
    value_type: Any, *, subject: SubjectName = topic_name, wire: wire_format.Wire = "prefix"
) -> ProtobufFormat:
    """Returns the format of messages of a class that protobuf has generated, with schemas of the registry.

    `subject` and `wire` are as in `awoke.avro`. Without a registry, the class itself is the type of the values:
    `value=OrderPb`.

    Raises:
        ConfigError: The type is no such class.
    """
    found = protobuf_classes.class_in(value_type)
    if found is None or not hasattr(getattr(found, "DESCRIPTOR", None), "file"):
        name = getattr(value_type, "__qualname__", value_type)
        text = f"awoke.protobuf({name}): takes a class that protobuf's compiler has generated, as order_pb2.Order"
        raise ConfigError(text, "value")
    return ProtobufFormat(value_type, subject, wire)


def own_schema(file: Any) -> Schema:
    """Returns the schema of a file, as its serialized description."""
    return Schema(base64.b64encode(file.serialized_pb).decode(), "PROTOBUF")


def imports(file: Any) -> tuple[Imported, ...]:
    """Returns the files that a file imports, with those that they import; without those that every registry has."""
    return tuple(
        Imported(each.name, own_schema(each), imports(each))
        for each in file.dependencies
        if not each.name.startswith(KNOWN)
    )
