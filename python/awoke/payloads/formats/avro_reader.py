"""Makes values of what fastavro has read: of a type, or as it is where values are dicts.

msgspec and pydantic find the class for a dict by its fields. In a union of several records that may be the wrong one,
so there the name of the record decides: fastavro then makes each record in a union a pair of name and dict.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.avro_resolution import AvroSchema
from awoke.payloads.formats.avro_scalars import SCALARS, kind_of, unqualified
from awoke.payloads.formats.avro_types import LISTS, simple_name
from awoke.payloads.formats.class_fields import (
    MAPS,
    class_of,
    fields_of,
    has_fields,
    has_named_union,
    is_union,
    members,
    plain_hint,
)
from awoke.payloads.formats.unquoted import unquoting

Convert = Callable[[Any], Any]
LEAVES = (*SCALARS, "array", "enum", "fixed")
CONCRETE = {list: list, set: set, frozenset: frozenset, tuple: tuple}


def needs_names(hint: Any, writer: AvroSchema) -> bool:
    """Tells whether what was written with a schema can be read as a type only by the names of its records."""
    if not is_untyped(hint) and has_named_union(hint):
        return True
    return any(has_several(each) for each in (writer.root, *writer.names.values()))


def named_converter(hint: Any, writer: AvroSchema) -> Convert:
    """Returns the function that makes a value of what fastavro has read by a schema, with names of records in unions.

    Raises:
        TypeError: Values of this type can't be made.
    """
    return AvroConverters(writer).of(hint, writer.root)


def with_names_of_records(value: Any, types: Mapping[str, Any]) -> Any:
    """Returns what fastavro has read with names, without those of types that are no records."""
    if isinstance(value, dict):
        return {name: with_names_of_records(each, types) for name, each in value.items()}
    if isinstance(value, list):
        return [with_names_of_records(each, types) for each in value]
    if isinstance(value, tuple):
        found = with_names_of_records(value[1], types)
        return (value[0], found) if is_record(types[value[0]]) else found
    return value


def is_untyped(hint: Any) -> bool:
    """Tells whether values are dicts, and only the schema says more."""
    return hint is None or hint in (dict, Any, dict[str, Any], dict[str, object])


def plain_converter(hint: Any) -> Convert:
    """Returns the function that makes a value by the type alone.

    Raises:
        TypeError: Neither msgspec nor pydantic can make values of this type.
    """
    if pydantic_models.mentions_model(hint):
        return pydantic_models.converter_for(hint)
    msgspec.inspect.type_info(hint)
    return unquoting(functools.partial(msgspec.convert, type=hint, dec_hook=read_model), hint)


def read_model(kind: Any, value: Any) -> Any:
    """Reads a pydantic model inside a type of msgspec's."""
    return _model_converter(kind)(value) if pydantic_models.is_model(kind) else value


@functools.lru_cache(maxsize=256)
def _model_converter(kind: Any) -> Convert:
    return pydantic_models.converter_for(kind)


class AvroConverters:
    """Makes the functions for the parts of a type, beside the parts of the schema that it was written with."""

    def __init__(self, writer: AvroSchema) -> None:
        self._types = writer.names
        self._begun: dict[tuple[Any, str], list[Convert]] = {}
        """The function for each class and record that was begun; empty until it is there."""

    def of(self, hint: Any, schema: Any) -> Convert:
        """Returns the function for a part of the type."""
        schema = self._written_out(schema)
        if not has_named_union(hint) and not self._gives_names(schema, frozenset()):
            return plain_converter(hint)
        if is_union(hint):
            return self._union(members(hint), schema)
        kind = plain_hint(hint)
        if isinstance(schema, list):
            return self._union([kind], schema)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if has_fields(kind):
            return self._class(kind, schema)
        if pydantic_models.is_root_model(kind):
            inner = self.of(pydantic_models.fields_of(kind)[0].hint, schema)
            return lambda value: kind(inner(value))
        if (origin in LISTS or origin is tuple) and kind_of(schema) == "array":
            convert, make = self.of(arguments[0], schema["items"]), CONCRETE.get(origin, list)
            return lambda value: make(map(convert, value))
        if origin in MAPS and kind_of(schema) == "map":
            convert = self.of(arguments[1], schema["values"])
            return lambda value: {name: convert(each) for name, each in value.items()}
        return plain_converter(hint)

    def _written_out(self, schema: Any) -> Any:
        """Returns a named type as it is declared, also where the schema only names it."""
        return self._types.get(schema, schema) if isinstance(schema, str) else schema

    def _class(self, kind: Any, schema: Any) -> Convert:
        if kind_of(schema) not in ("record", "error"):
            return plain_converter(kind)
        key = (kind, schema["name"])
        if key in self._begun:
            known = self._begun[key]
            return lambda value: known[0](value)
        begun = self._begun[key] = []
        begun.append(self._made(kind, {each["name"]: each["type"] for each in schema["fields"]}))
        return begun[0]

    def _made(self, kind: Any, written: Mapping[str, Any]) -> Convert:
        fields = [each for each in fields_of(kind) if not each.is_computed]
        is_model = pydantic_models.is_model(kind)
        if not is_model and not all(each.is_argument for each in fields):
            raise TypeError(
                f"{kind.__qualname__} has a field that it does not take as an argument, and a union of records"
            )
        parts = [
            (
                each.name,
                each.name if is_model else each.attribute,
                self._part(each.hint, written.get(each.name), is_model),
            )
            for each in fields
        ]
        if is_model:
            validate = pydantic_models.converter_for(kind)
        maker = class_of(kind)

        def make(value: Any) -> Any:
            found = {name: convert(value[key]) for key, name, convert in parts if key in value}
            return validate(found) if is_model else maker(**found)

        return make

    def _part(self, hint: Any, schema: Any, is_model: bool) -> Convert:
        """Returns the function for a field; one that was not written has its default, in which no record is named."""
        schema = "null" if schema is None else schema
        if is_model and not has_named_union(hint) and not self._gives_names(schema, frozenset()):
            return _unchanged  # Pydantic reads it with the model.
        return self.of(hint, schema)

    def _union(self, kinds: list[Any], schema: Any) -> Convert:
        branches = schema if isinstance(schema, list) else [schema]
        branches = [self._written_out(each) for each in branches]
        named = {each["name"]: self._named(each, kinds) for each in branches if is_record(each)}
        others = [each for each in kinds if not has_fields(each)]
        rest = [each for each in branches if not is_record(each)]
        only = next(iter(named.values()), None) if not isinstance(schema, list) else None
        convert_other = self._other(others, rest) if others else None

        def convert(value: Any) -> Any:
            if type(value) is tuple:
                name, value = value
                if name in named:
                    return named[name](value)
            if only is not None and isinstance(value, dict):
                return only(value)
            if convert_other is None:
                raise msgspec.ValidationError("Expected one of the union's records")
            return convert_other(value)

        return convert

    def _other(self, kinds: list[Any], schemas: list[Any]) -> Convert:
        """Returns the function for values that are no records."""
        if not any(map(has_named_union, kinds)) and not any(self._gives_names(each, frozenset()) for each in schemas):
            return plain_converter(typing.Union[tuple(kinds)])  # noqa: UP007 - of a tuple.
        for kind in kinds:
            for schema in schemas:
                if (typing.get_origin(kind) in (*LISTS, tuple) and kind_of(schema) == "array") or (
                    typing.get_origin(kind) in MAPS and kind_of(schema) == "map"
                ):
                    inner, plain = self.of(kind, schema), [each for each in kinds if each is not kind]
                    other = self._other(plain, [each for each in schemas if each is not schema]) if plain else None
                    is_inner = list if kind_of(schema) == "array" else dict
                    return lambda value: inner(value) if isinstance(value, is_inner) or other is None else other(value)
        return plain_converter(typing.Union[tuple(kinds)])  # noqa: UP007

    def _named(self, record: Any, kinds: list[Any]) -> Convert:
        """Returns the function for one record of a union: the one for the class of its name."""
        classes = [each for each in kinds if has_fields(each)]
        found = [each for each in classes if simple_name(each) == unqualified(record["name"])]
        if not found and len(classes) == 1:
            found = classes
        if not found:
            return functools.partial(_refuse, record["name"])
        return self._class(found[0], record)

    def _gives_names(self, schema: Any, around: frozenset[str]) -> bool:
        """Tells whether fastavro names records in a part that was written with this schema."""
        if isinstance(schema, str):
            if schema in around or schema not in self._types:
                return False
            schema = self._types[schema]
        if isinstance(schema, list):
            # fastavro also names an enum or fixed bytes that the union has by reference.
            is_named = any(is_record(each) or (isinstance(each, str) and each in self._types) for each in schema)
            return is_named or any(self._gives_names(each, around) for each in schema)
        if is_record(schema):
            within = around | {schema["name"]}
            return any(self._gives_names(each["type"], within) for each in schema["fields"])
        inner = [schema[name] for name in ("items", "values") if isinstance(schema, dict) and name in schema]
        return any(self._gives_names(each, around) for each in inner)


def has_several(schema: Any) -> bool:
    """Tells whether a schema has a union in itself, not in the types that it names, of which several may be dicts."""
    if isinstance(schema, list):
        dicts = [each for each in schema if kind_of(each) not in LEAVES]
        return len(dicts) > 1 or any(map(has_several, dicts))
    if not isinstance(schema, dict):
        return False
    inner = [each["type"] for each in schema.get("fields", ())]
    return any(map(has_several, [*inner, *(schema[name] for name in ("items", "values") if name in schema)]))


def is_record(schema: Any) -> bool:
    """Tells whether a schema, written out, is that of a record."""
    return isinstance(schema, dict) and schema.get("type") in ("record", "error")


def _refuse(name: str, value: Any) -> Any:
    raise msgspec.ValidationError("Expected one of the union's records")


def _unchanged(value: Any) -> Any:
    return value
