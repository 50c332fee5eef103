"""Writes Protobuf messages without generated classes: their files are in a registry, as descriptions or sources.

It finds what does not fit, too, because the errors of `json_format` quote values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from awoke.cli.encoding.misfits import inside, misfit, place, unknown_field
from awoke.payloads.decoding.protobuf_messages import pool_for
from awoke.payloads.decoding.protobuf_sources import NotCompiled
from awoke.payloads.formats import protobuf_classes, protobuf_schemas
from awoke.payloads.formats.protobuf_schemas import Indexes
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.schema import RegisteredSchema
from awoke.payloads.registry.schemas import Schemas
from awoke.preconditions.extras import needs

Choose = Callable[[Mapping[Indexes, str]], tuple[Indexes, str]]
"""Picks place and full name of a message among those of a schema."""

KNOWN = "google.protobuf."
"""The package of the messages that have forms of their own in JSON."""


def protobuf_writer(registered: RegisteredSchema, schemas: Schemas, choose: Choose) -> Callable[[Any], bytes]:
    """Returns the function that writes values of JSON as messages, as `json_format` takes them: bytes are base64.

    The function raises ValueError where a field does not fit, and EncodeError where a required one is missing. Blocks
    if a source is to be compiled.

    Raises:
        ValueError: The source of the file can't be compiled; the descriptions do not fit together. SchemaNeeded: A
        schema that it refers to is not loaded yet. ConfigError: protobuf is not installed.
    """
    try:
        pool = pool_for(registered, schemas)
    except NotCompiled as error:
        raise ValueError(f"it is registered as .proto source{error}") from None
    indexes, name = choose(protobuf_schemas.places(registered.schema.text))
    parsing = _Parsing(pool)
    descriptor = pool.FindMessageTypeByName(name)
    before = wire_format.prefix(registered.id) + wire_format.write_indexes(indexes)

    def write(value: Any) -> bytes:
        message = parsing.message(value, descriptor)
        if message is None:
            raise parsing.misfit(value, descriptor, "")
        return before + protobuf_classes.encode(message)

    return write


class _Parsing:
    """Makes messages of a pool from values of JSON."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._format = needs("google.protobuf.json_format", "protobuf")
        self._class_of = needs("google.protobuf.message_factory", "protobuf").GetMessageClass

    def message(self, value: Any, descriptor: Any) -> Any:
        """Returns a value as a message; None if it does not fit."""
        if not _has_own_form(descriptor) and not isinstance(value, dict):
            return None
        message = self._class_of(descriptor)()
        try:
            self._format.ParseDict(value, message, descriptor_pool=self._pool)
        except (self._format.ParseError, TypeError, ValueError, AttributeError, RecursionError):
            return None
        return message

    def misfit(self, value: Any, descriptor: Any, at: str) -> ValueError:
        """Returns the error for a value that is no such message; it has the first field that does not fit."""
        if _has_own_form(descriptor) or not isinstance(value, dict):
            return misfit(value, f"the message {descriptor.full_name}", at)
        named = {name: each for each in descriptor.fields for name in (each.name, each.json_name)}
        for name, each in value.items():
            if name not in named:
                return unknown_field(name, at, [each.name for each in descriptor.fields])
            if self.message({name: each}, descriptor) is None:
                return self._field(each, named[name], inside(at, name))
        return ValueError(f"{place(at)} has two fields of which only one may be set")

    def _field(self, value: Any, field: Any, at: str) -> ValueError:
        if not _is_repeated(field):
            return self._single(value, field, at)
        if _is_map(field):
            return self._map(value, field.message_type.fields_by_name, at)
        if not isinstance(value, list):
            return misfit(value, f"array of {_name_of(field)}", at)
        for number, each in enumerate(value):
            if each is None or self.message({field.name: [each]}, field.containing_type) is None:
                return self._single(each, field, f"{at}[{number}]")
        return misfit(value, f"array of {_name_of(field)}", at)

    def _map(self, value: Any, fields: Any, at: str) -> ValueError:
        if not isinstance(value, dict):
            return misfit(value, "map", at)
        # The keys are data, so errors do not have them.
        for each in value.values():
            if each is None or self.message({"value": each}, fields["value"].containing_type) is None:
                return self._single(each, fields["value"], f"{at}[…]")
        return ValueError(f"{place(at)} has a key that is no {_name_of(fields['key'])}")

    def _single(self, value: Any, field: Any, at: str) -> ValueError:
        if field.message_type is not None and value is not None:
            return self.misfit(value, field.message_type, at)
        if isinstance(value, int) and not isinstance(value, bool) and "int" in _name_of(field):
            return ValueError(f"{place(at)} is a number beyond the range of {_name_of(field)}")
        return misfit(value, _name_of(field), at)


def _has_own_form(descriptor: Any) -> bool:
    return bool(descriptor.full_name.startswith(KNOWN))


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _is_repeated(field: Any) -> bool:
    # Older versions of protobuf do not have the property, and newer ones warn of the label.
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def _name_of(field: Any) -> str:
    """Returns the name of a type for people."""
    if field.message_type is not None:
        return f"the message {field.message_type.full_name}"
    if field.enum_type is not None:
        return f"one of {', '.join(each.name for each in field.enum_type.values)}"
    kinds = needs("google.protobuf.descriptor_pb2", "protobuf").FieldDescriptorProto.Type
    name = str(kinds.Name(field.type)).removeprefix("TYPE_").lower()
    return f"{name} as base64" if name == "bytes" else name
