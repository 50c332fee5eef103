"""Writes Avro: each value by its own class, so that the branch of a union is the one of the value, or an error.

Nothing is made to fit: a value that its schema can't hold as it is raises `Misfit`.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import operator
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.avro_resolution import AvroSchema
from awoke.payloads.formats.avro_scalars import (
    LOGICAL,
    Misfit,
    Write,
    enum_writer,
    fixed_writer,
    kind_of,
    misfit_of,
    scalar_writer,
    unqualified,
    write_long,
    write_string,
)
from awoke.payloads.formats.class_fields import fields_of, has_fields
from awoke.payloads.formats.model_round_trips import round_trip

ARRAYS = (list, tuple, set, frozenset, collections.deque)

NATURAL: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("int", "long", "double", "float"),
    float: ("double", "float"),
    str: ("string", "enum", "uuid"),
    bytes: ("bytes", "fixed"),
    bytearray: ("bytes", "fixed"),
    uuid.UUID: ("uuid",),
    decimal.Decimal: ("decimal",),
    datetime.datetime: ("timestamp-micros", "timestamp-millis", "local-timestamp-micros", "local-timestamp-millis"),
    datetime.date: ("date",),
    datetime.time: ("time-micros", "time-millis"),
    dict: ("record", "map"),
}
"""The kinds of branches for a value of a class, the best first."""


class Branch(NamedTuple):
    """One type of a union."""

    place: bytes
    """Its index, as it is written."""
    kind: str
    """Its logical type, if Avro knows that, or its type."""
    name: str | None
    """The full name of a named type."""
    write: Write


def writer_for(schema: AvroSchema, names: Mapping[Any, Collection[str]]) -> Write:
    """Returns the function that appends a value to bytes, by a schema.

    `names` has the classes of the values with the names of their records and enums; empty if values are of any class.
    """
    return AvroWriters(schema, names).of(schema.root)


class AvroWriters:
    """Makes the functions that write the parts of one schema."""

    def __init__(self, schema: AvroSchema, names: Mapping[Any, Collection[str]]) -> None:
        self._types, self._names = schema.names, names
        self._records: dict[str, Write] = {}
        """Of each named type that was begun, by its full name."""
        self._simple_names = {unqualified(each) for each in schema.names}

    def of(self, schema: Any) -> Write:
        """Returns the function for a part of the schema."""
        if isinstance(schema, list):
            return self._union(schema)
        kind = kind_of(schema)
        if kind in self._types:
            return self._named(kind)
        if isinstance(schema, dict) and "name" in schema:
            return self._named(schema["name"])
        if kind == "array":
            return array_writer(self.of(schema["items"]))
        if kind == "map":
            return map_writer(self.of(schema["values"]))
        return scalar_writer(schema)

    def _named(self, name: str) -> Write:
        found = self._records.get(name)
        if found is not None:
            return found
        schema = self._types[name]
        if schema["type"] == "enum":
            made: Write = enum_writer(schema["symbols"])
        elif schema["type"] == "fixed":
            made = fixed_writer(schema)
        else:
            record = RecordWriter(schema, self._accepts)
            self._records[name] = record.write  # Before its fields, which may be of the same type.
            record.fill([self._field(each) for each in schema["fields"]])
            made = record.write
        self._records[name] = made
        return made

    def _field(self, field: Mapping[str, Any]) -> RecordField:
        write = self.of(field["type"])
        if "default" not in field:
            return RecordField(field["name"], write, None)
        default = bytearray()
        try:
            write(default, datum_of(field["default"], field["type"], self._types))
        except RecursionError:
            raise
        except Misfit:
            return RecordField(field["name"], write, None)
        return RecordField(field["name"], write, bytes(default))

    def _accepts(self, kind: Any, record: str) -> bool:
        """Tells whether values of a class are written as this record."""
        if not self._names:
            return True
        names = self._names.get(kind, ())
        return unqualified(record) in names or (bool(names) and self._simple_names.isdisjoint(names))

    def _union(self, schemas: list[Any]) -> Write:
        branches = []
        for index, schema in enumerate(schemas):
            schema = self._types.get(schema, schema) if isinstance(schema, str) else schema
            name = schema["name"] if isinstance(schema, dict) and "name" in schema else None
            place = bytearray()
            write_long(place, index)
            branches.append(Branch(bytes(place), self._branch_kind(schema), name, self.of(schema)))
        nulls, others = ([each for each in branches if (each.kind == "null") is is_null] for is_null in (True, False))
        if len(nulls) == len(others) == 1:
            return optional_writer(nulls[0].place, others[0])
        return UnionWriter(branches, self._names).write

    def _branch_kind(self, schema: Any) -> str:
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if logical in LOGICAL or (logical == "decimal" and "precision" in schema):
            return str(logical)
        kind = kind_of(schema)
        return "record" if kind == "error" else kind


class RecordField(NamedTuple):
    """One field of a record."""

    name: str
    write: Write
    default: bytes | None
    """None if it has no default."""


class RecordWriter:
    """Writes records of one schema: dicts, and values of classes."""

    def __init__(self, schema: Mapping[str, Any], accepts: Callable[[Any, str], bool]) -> None:
        self._name, self._accepts = schema["name"], accepts
        self._fields: list[RecordField] = []
        self._plans: dict[type, Write] = {}

    def fill(self, fields: list[RecordField]) -> None:
        """Gives the fields, which may contain the record itself."""
        self._fields = fields

    def write(self, out: bytearray, value: Any) -> None:
        """Appends a record."""
        kind = type(value)
        plan = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = self._plan(kind)
        plan(out, value)

    def _plan(self, kind: Any) -> Write:
        if issubclass(kind, Mapping):
            return self._write_mapping
        if kind is tuple:
            return self._write_named
        if not has_fields(kind):
            return refusing(f"takes a record {self._name!r}, not")
        if not self._accepts(kind, self._name):
            return refusing(f"takes a record {self._name!r}, which is not the one of")
        is_model = pydantic_models.is_model(kind)
        if is_model and round_trip(kind).has_serializers:
            return lambda out, value: self._write_mapping(out, pydantic_models.to_builtins(value))
        attributes = {each.name: each.attribute for each in fields_of(kind)}
        unknown = sorted(attributes.keys() - {each.name for each in self._fields})
        if unknown:
            return failing(f"the schema of {self._name!r} has no field {unknown[0]!r}")
        missing = [each.name for each in self._fields if each.name not in attributes and each.default is None]
        if missing:
            return failing(f"{kind.__qualname__} has no field {missing[0]!r}, which the schema needs")
        return self._class_writer([(each, attributes.get(each.name)) for each in self._fields], is_model)

    def _class_writer(self, parts: list[tuple[RecordField, str | None]], is_model: bool) -> Write:
        steps = [
            (field.name, field.write if name is not None else constant(field.default or b""), field.default)
            for field, name in parts
        ]
        names = [name or "__class__" for _, name in parts]
        get = operator.attrgetter(*names) if len(names) > 1 else None

        def write_class(out: bytearray, value: Any) -> None:
            if is_model and getattr(value, "__pydantic_extra__", None):
                raise Misfit("the model has extra fields, and the record has none")
            found = get(value) if get is not None else tuple(getattr(value, name) for name in names)
            for (name, write, default), part in zip(steps, found, strict=True):
                try:
                    if part is msgspec.UNSET:
                        if default is None:
                            raise Misfit("the field is not set, and has no default")
                        out += default
                    else:
                        write(out, part)
                except Misfit as misfit:
                    raise misfit.within(f".{name}") from None

        return write_class

    def _write_named(self, out: bytearray, value: tuple[Any, ...]) -> None:
        """Appends a record that is given with its name, as in a union."""
        if len(value) != 2 or not isinstance(value[0], str) or unqualified(value[0]) != unqualified(self._name):
            raise Misfit(f"takes a record {self._name!r}, or its name and the record")
        self.write(out, value[1])

    def _write_mapping(self, out: bytearray, value: Mapping[str, Any]) -> None:
        count = 0
        for name, write, default in self._fields:
            try:
                if name in value:
                    count += 1
                    write(out, value[name])
                elif default is None:
                    raise Misfit("the field is missing, and has no default")
                else:
                    out += default
            except Misfit as misfit:
                raise misfit.within(f".{name}") from None
        if count + ("-type" in value) != len(value):
            raise Misfit(f"there is a field that the schema of {self._name!r} does not have")


class UnionWriter:
    """Writes a value by the branch of a union that is the value's own."""

    def __init__(self, branches: list[Branch], names: Mapping[Any, Collection[str]]) -> None:
        self._branches, self._names = branches, names
        self._of_class: dict[type, Branch] = {}
        """The branch of each class with fields that has come up; of None, too."""

    def write(self, out: bytearray, value: Any) -> None:
        """Appends the place of the branch, and the value."""
        branch = self._of_class.get(type(value))
        if branch is None:
            branch = self._branch_of(value)
            if branch is None:
                self._write_fitting(out, value)
                return
        out += branch.place
        branch.write(out, value)

    def _branch_of(self, value: Any) -> Branch | None:
        """Returns the branch that the value's class decides; None if more has to be known."""
        kind = type(value)
        if value is None:
            found = [each for each in self._branches if each.kind == "null"]
        elif has_fields(kind) and not isinstance(value, Mapping):
            found = self._named_like(kind, "record")
        elif isinstance(value, enum.Enum):
            found = self._named_like(kind, "enum")
            if not found:
                return None
        else:
            return None
        if len(found) != 1:
            raise Misfit(f"no type of the union is that of {kind.__qualname__}")
        self._of_class[kind] = found[0]
        return found[0]

    def _named_like(self, kind: type, what: str) -> list[Branch]:
        names = self._names.get(kind, (kind.__name__,))
        those = [each for each in self._branches if each.kind == what]
        found = [each for each in those if each.name is not None and unqualified(each.name) in names]
        return found or (those if len(those) == 1 and what == "record" else [])

    def _write_fitting(self, out: bytearray, value: Any) -> None:
        if isinstance(value, enum.Enum):
            value = value.value
        candidates = self._candidates(value)
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            named = [
                each for each in self._branches if each.name == value[0] or unqualified(each.name or "") == value[0]
            ]
            candidates, value = (named, value[1]) if named else (candidates, value)
        elif isinstance(value, Mapping) and "-type" in value:
            candidates = [each for each in candidates if each.name == value["-type"]]
        found = None
        misfit = Misfit(f"no type of the union takes a value of type {type(value).__qualname__}")
        for branch in candidates:
            data = bytearray(branch.place)
            try:
                branch.write(data, value)
            except Misfit as error:
                misfit = error if len(candidates) == 1 else misfit
                continue
            if branch.kind not in ("record", "map"):
                found = data
                break
            if found is not None:
                raise Misfit("several records of the union take it; name one: ('shop.Order', {…})")
            found = data
        if found is None:
            raise misfit
        out += found

    def _candidates(self, value: Any) -> list[Branch]:
        kind = type(value)
        natural = NATURAL.get(kind) or next((each for base, each in NATURAL.items() if isinstance(value, base)), ())
        if isinstance(value, ARRAYS):
            natural = ("array",)
        elif isinstance(value, Mapping):
            natural = NATURAL[dict]
        ranked = [each for name in natural for each in self._branches if each.kind == name]
        return ranked or [each for each in self._branches if each.kind not in ("null", *NATURAL[dict])]


def optional_writer(null: bytes, other: Branch) -> Write:
    """Returns the function for a union of null and one other type."""
    index, write_other = other.place, other.write

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out += null
        else:
            out += index
            write_other(out, value)

    return write


def array_writer(write_item: Write) -> Write:
    """Returns the function that writes arrays."""

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, ARRAYS):
            raise misfit_of("an array", value)
        if value:
            write_long(out, len(value))
            for place, item in enumerate(value):
                try:
                    write_item(out, item)
                except Misfit as misfit:
                    raise misfit.within(f"[{place}]") from None
        out.append(0)

    return write


def map_writer(write_value: Write) -> Write:
    """Returns the function that writes maps."""

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise misfit_of("a map", value)
        if value:
            write_long(out, len(value))
            for key, item in value.items():
                try:
                    write_string(out, key)
                    write_value(out, item)
                except Misfit as misfit:
                    raise misfit.within("[...]") from None
        out.append(0)

    return write


def constant(data: bytes) -> Write:
    """Returns the function that writes the same for each value."""

    def write(out: bytearray, value: Any) -> None:
        out += data

    return write


def refusing(text: str) -> Write:
    """Returns the function that takes no value; the text ends with the value's class."""

    def write(out: bytearray, value: Any) -> None:
        raise Misfit(f"{text} {type(value).__qualname__}")

    return write


def failing(text: str) -> Write:
    """Returns the function that takes no value, for this reason."""

    def write(out: bytearray, value: Any) -> None:
        raise Misfit(text)

    return write


def datum_of(default: Any, schema: Any, types: Mapping[str, Any]) -> Any:
    """Returns a default, which a schema has as JSON, as a value."""
    if isinstance(schema, list):
        schema = schema[0]
    if isinstance(schema, str):
        schema = types.get(schema, schema)
    kind = kind_of(schema)
    if kind in ("bytes", "fixed") and isinstance(default, str):
        return default.encode("latin-1")
    if kind == "array" and isinstance(default, list):
        return [datum_of(each, schema["items"], types) for each in default]
    if kind == "map" and isinstance(default, dict):
        return {name: datum_of(each, schema["values"], types) for name, each in default.items()}
    if kind in ("record", "error") and isinstance(default, dict):
        fields = {each["name"]: each["type"] for each in schema["fields"]}
        return {name: datum_of(each, fields[name], types) for name, each in default.items() if name in fields}
    return default
