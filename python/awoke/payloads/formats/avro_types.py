"""Makes Avro schemas of Python types: msgspec structs, dataclasses, attrs, typed dicts, pydantic models, and parts."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import msgspec.inspect as described

from awoke.payloads.formats import pydantic_models

LOGICAL: dict[type[Any], dict[str, Any]] = {
    described.DateTimeType: {"type": "long", "logicalType": "timestamp-micros"},
    described.DateType: {"type": "int", "logicalType": "date"},
    described.TimeType: {"type": "long", "logicalType": "time-micros"},
    described.UUIDType: {"type": "string", "logicalType": "uuid"},
}
PLAIN: dict[type[Any], str] = {
    described.NoneType: "null",
    described.BoolType: "boolean",
    described.IntType: "long",
    described.FloatType: "double",
    described.StrType: "string",
    described.BytesType: "bytes",
    described.ByteArrayType: "bytes",
}
RECORDS = (described.StructType, described.DataclassType, described.TypedDictType)
USABLE = "give the schema yourself: awoke.avro(Order, schema='…')"


class RecordField(NamedTuple):
    """One field of a record."""

    name: str
    """Its name in the schema."""
    info: Any
    """Its type, as msgspec describes it."""
    default: Any = msgspec.NODEFAULT


def schema_of(value_type: Any, namespace: str | None = None) -> Any:
    """Returns the Avro schema of a type, as parsed JSON. The record's name is the name of its class.

    `int` is a `long`, `float` a `double`, an enum of texts an `enum`, a datetime a `timestamp-micros`. A field with a
    default has it in the schema, too, if JSON can hold it.

    Raises:
        TypeError: Avro has no such type; names the part.
    """
    try:
        info = msgspec.inspect.type_info(value_type)
    except (TypeError, ValueError, NameError, msgspec.MsgspecError) as error:
        raise TypeError(f"{error}; {USABLE}") from None
    return _Schema(namespace).of(info, getattr(value_type, "__qualname__", str(value_type)))


def record_name(value_type: Any, namespace: str | None) -> str:
    """Returns the full name of a class's record."""
    name = str(getattr(value_type, "__name__", value_type))
    return f"{namespace}.{name}" if namespace else name


class _Schema:
    """Makes one schema; a named type is written out once, and named where it comes again."""

    def __init__(self, namespace: str | None) -> None:
        self._namespace = namespace
        self._seen: dict[str, Any] = {}

    def of(self, info: Any, at: str) -> Any:
        """Returns the schema of a type that msgspec has described; `at` is its place, for errors."""
        kind = type(info)
        if kind in PLAIN:
            return PLAIN[kind]
        if kind in LOGICAL:
            return dict(LOGICAL[kind])
        if isinstance(info, described.UnionType):
            return [
                self.of(each, at) for each in sorted(info.types, key=lambda each: type(each) is not described.NoneType)
            ]
        if isinstance(info, RECORDS):
            return self._named(info.cls, lambda: self._record(info.cls, fields_of(info)))
        if isinstance(info, described.CustomType) and pydantic_models.is_model(info.cls):
            return self._named(info.cls, lambda: self._record(info.cls, model_fields_of(info.cls)))
        if isinstance(info, described.EnumType):
            return self._named(info.cls, lambda: self._enum(info.cls, at))
        return self._of_many(info, at)

    def _of_many(self, info: Any, at: str) -> Any:
        if isinstance(info, described.CollectionType | described.VarTupleType):
            return {"type": "array", "items": self.of(info.item_type, at)}
        if isinstance(info, described.DictType) and isinstance(info.key_type, described.StrType):
            return {"type": "map", "values": self.of(info.value_type, at)}
        if isinstance(info, described.LiteralType) and all(isinstance(each, str) for each in info.values):
            return "string"
        name = type(info).__name__.removesuffix("Type")
        raise TypeError(f"{at}: Avro has no type for {name}; {USABLE}")

    def _named(self, kind: type, make: Callable[[], dict[str, Any]]) -> Any:
        name = record_name(kind, self._namespace)
        if name in self._seen:
            if self._seen[name] is not kind:
                raise TypeError(f"two classes are named {name}; {USABLE}")
            return name
        self._seen[name] = kind
        return make()

    def _record(self, kind: type, fields: list[RecordField]) -> dict[str, Any]:
        return {**self._head("record", kind), "fields": [self._field(kind, each) for each in fields]}

    def _head(self, what: str, kind: type) -> dict[str, Any]:
        head = {"type": what, "name": kind.__name__}
        return {**head, "namespace": self._namespace} if self._namespace else head

    def _field(self, owner: type, field: RecordField) -> dict[str, Any]:
        made = {"name": field.name, "type": self.of(field.info, f"{owner.__qualname__}.{field.name}")}
        if field.default is msgspec.NODEFAULT:
            return made
        kinds = made["type"]
        if isinstance(kinds, list) and field.default is not None:
            made["type"] = sorted(kinds, key=lambda kind: kind == "null")  # A default is of the union's first type.
        return {**made, "default": field.default}

    def _enum(self, kind: Any, at: str) -> dict[str, Any]:
        symbols = [each.value for each in kind]
        if not all(isinstance(each, str) and each.isidentifier() for each in symbols):
            raise TypeError(f"{at}: the values of {kind.__qualname__} are no names, which Avro's symbols are; {USABLE}")
        return {**self._head("enum", kind), "symbols": symbols}


def fields_of(info: Any) -> list[RecordField]:
    """Returns the fields of a record that msgspec has described."""
    return [RecordField(getattr(each, "encode_name", each.name), each.type, default_of(each)) for each in info.fields]


def model_fields_of(kind: Any) -> list[RecordField]:
    """Returns the fields of a model of pydantic's."""
    return [
        RecordField(
            name, msgspec.inspect.type_info(annotation), msgspec.NODEFAULT if default is ... else plain(default)
        )
        for name, annotation, default in pydantic_models.fields_of(kind)
    ]


def default_of(field: Any) -> Any:
    """Returns a field's default as JSON has it; NODEFAULT where there is none that an Avro schema can hold."""
    if field.default_factory in (list, dict):
        return field.default_factory()
    return plain(field.default)


def plain(default: Any) -> Any:
    """Returns a default as JSON has it; NODEFAULT for one that JSON can't hold."""
    default = getattr(default, "value", default)  # Of an enum.
    return default if default is None or isinstance(default, bool | int | float | str) else msgspec.NODEFAULT


def classes_in(value_type: Any) -> list[Any]:
    """Returns the types of a union without None, or the type itself as the only one."""
    is_union = typing.get_origin(value_type) in (typing.Union, types.UnionType)
    return [each for each in (typing.get_args(value_type) if is_union else (value_type,)) if each is not type(None)]
