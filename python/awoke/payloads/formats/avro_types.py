"""Makes Avro schemas of Python types: msgspec structs, dataclasses, attrs, typed dicts, pydantic models, and parts."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import math
import re
import typing
import uuid
from collections.abc import Iterable
from typing import Any

import msgspec

from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.class_fields import (
    MAPS,
    ClassField,
    class_of,
    fields_of,
    has_fields,
    is_union,
    members,
    plain_hint,
    private_in,
)
from awoke.payloads.formats.model_round_trips import round_trip

MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL_TIME = {"type": "long", "logicalType": "local-timestamp-micros"}
SCALARS: dict[Any, Any] = {
    None: "null",
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    bytearray: "bytes",
    datetime.datetime: MOMENT,
    datetime.date: {"type": "int", "logicalType": "date"},
    datetime.time: {"type": "long", "logicalType": "time-micros"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}
ORDER = {"null": 0, "double": 2, "bytes": 2}
LISTS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Collection, collections.abc.Set)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
USABLE = "give the schema yourself: awoke.avro(Order, schema='…')"
DIGITS = (
    "Avro's decimals need their digits: Annotated[Decimal, msgspec.Meta(extra={'precision': 12, 'scale': 2})], or "
    "pydantic's max_digits and decimal_places"
)


def schema_of(value_type: Any, namespace: str | None = None) -> Any:
    """Returns the Avro schema of a type, as parsed JSON. The record's name is the name of its class.

    `int` is a `long`, `float` a `double`, an enum of names an `enum`, a datetime a `timestamp-micros`. A field with a
    default has it in the schema, too, if JSON can hold it.

    Raises:
        TypeError: Avro has no such type; names the part.
    """
    try:
        return SchemaOfTypes(namespace).of(value_type, getattr(value_type, "__qualname__", str(value_type)))
    except NameError as error:
        raise TypeError(f"{error}; {USABLE}") from None


def record_name(value_type: Any, namespace: str | None) -> str:
    """Returns the full name of a class's record."""
    name = simple_name(value_type)
    return f"{namespace}.{name}" if namespace else name


def simple_name(value_type: Any) -> str:
    """Returns the name of a class's record; that of a generic class has the names of what it was given."""
    parts = [getattr(class_of(value_type), "__name__", str(value_type))]
    if class_of(value_type) is not value_type:
        parts += [simple_name(each) for each in typing.get_args(value_type)]
    return re.sub(r"\W+", "_", "_".join(parts)).strip("_")


class SchemaOfTypes:
    """Makes one schema; a named type is written out once, and named where it comes again."""

    def __init__(self, namespace: str | None) -> None:
        self._namespace = namespace
        self._seen: dict[str, Any] = {}

    def of(self, hint: Any, at: str) -> Any:
        """Returns the schema of a type; `at` is its place, for errors."""
        if is_union(hint):
            return self._union(hint, at)
        kind = plain_hint(hint)
        if kind is decimal.Decimal:
            return _decimal(hint, at)
        if kind is datetime.datetime and any(getattr(each, "tz", None) is False for each in _metadata(hint)):
            return dict(LOCAL_TIME)
        if (kind is None or isinstance(kind, type)) and kind in SCALARS:
            found = SCALARS[kind]
            return dict(found) if isinstance(found, dict) else found
        if typing.get_origin(kind) is typing.Literal:
            return self._union_of(at, [self._scalar_of(each, at) for each in typing.get_args(kind)])
        if has_fields(kind):
            return self._record(kind, at)
        if isinstance(kind, type):
            return self._class(kind, at)
        return self._collection(kind, at)

    def _class(self, kind: type, at: str) -> Any:
        if issubclass(kind, enum.Enum):
            return self._enum(kind, at)
        if pydantic_models.is_root_model(kind):
            return self.of(pydantic_models.fields_of(kind)[0].hint, at)
        if kind.__module__.startswith("pydantic") and kind.__name__ in ("AwareDatetime", "NaiveDatetime"):
            return dict(MOMENT if kind.__name__ == "AwareDatetime" else LOCAL_TIME)
        raise TypeError(f"{at}: Avro has no type for {kind.__qualname__}; {USABLE}")

    def _collection(self, kind: Any, at: str) -> Any:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if (origin in LISTS and arguments) or (origin is tuple and arguments[1:] == (...,)):
            return {"type": "array", "items": self.of(arguments[0], at)}
        if origin in MAPS and plain_hint(arguments[0]) is str:
            return {"type": "map", "values": self.of(arguments[1], at)}
        name = "Tuple" if origin is tuple else getattr(kind, "__name__", str(kind))
        raise TypeError(f"{at}: Avro has no type for {name}; {USABLE}")

    def _scalar_of(self, value: Any, at: str) -> Any:
        """Returns the schema of a value of a literal type."""
        if type(value) not in (str, int, bool, type(None)):
            raise TypeError(f"{at}: Avro has no type for a literal of type {type(value).__qualname__}; {USABLE}")
        return SCALARS[type(value)]

    def _union(self, hint: Any, at: str) -> Any:
        kinds = members(hint)
        return self._union_of(at, [self.of(each, at) for each in kinds])

    def _union_of(self, at: str, branches: list[Any]) -> Any:
        """Returns a union, or its only branch. Avro's unions have no two branches of a type, except named ones."""
        found: dict[str, Any] = {}
        for branch in (each for part in branches for each in (part if isinstance(part, list) else [part])):
            key = branch_kind(branch)
            if found.setdefault(key, branch) != branch or (found[key] is not branch and key in ("array", "map")):
                raise TypeError(f"{at}: a union of Avro's can't have two kinds of {key}; {USABLE}")
        # A reader takes the first type that can read the writer's: bytes also read strings, and double any number.
        ranked = sorted(found.values(), key=lambda each: ORDER.get(branch_kind(each), 1))
        return ranked[0] if len(ranked) == 1 else ranked

    def _record(self, kind: Any, at: str) -> Any:
        name = record_name(kind, self._namespace)
        if not self._is_new(name, kind):
            return name
        if (private := private_in(kind)) is not None:
            raise TypeError(f"{private} begins with an underscore: msgspec neither writes nor reads it")
        if pydantic_models.is_model(kind) and round_trip(kind).has_serializers:
            raise TypeError(
                f"{at}: a serializer of {kind.__qualname__} writes another type than its field says; {USABLE}"
            )
        fields = [self._field(simple_name(kind), each) for each in fields_of(kind)]
        return {**self._head("record", simple_name(kind)), "fields": fields}

    def _is_new(self, name: str, kind: Any) -> bool:
        if name in self._seen:
            if self._seen[name] != kind:
                raise TypeError(f"two classes are named {name}; {USABLE}")
            return False
        self._seen[name] = kind
        return True

    def _head(self, what: str, name: str) -> dict[str, Any]:
        head = {"type": what, "name": name}
        return {**head, "namespace": self._namespace} if self._namespace else head

    def _field(self, owner: str, field: ClassField) -> dict[str, Any]:
        at = f"{owner}.{field.attribute}"
        if not NAME.fullmatch(field.name):
            raise TypeError(f"{at}: {field.name!r} is not a name that Avro's fields can have; {USABLE}")
        made = {"name": field.name, "type": self.of(field.hint, at)}
        default = json_default(field)
        if default is msgspec.NODEFAULT:
            return made
        kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
        fitting = [each for each in kinds if is_default_of(default, each)]
        if not fitting:
            return made
        if len(kinds) > 1 and default is not None:  # A default is of the union's first type.
            null_last = sorted(kinds, key=lambda each: each == "null")
            made["type"] = [fitting[0], *(each for each in null_last if each is not fitting[0])]
        return {**made, "default": default}

    def _enum(self, kind: type[enum.Enum], at: str) -> Any:
        """Returns an enum if the values are such names as Avro's symbols are, or else what the values are."""
        values = [each.value for each in kind]
        if values and all(type(each) is int for each in values):
            return "long"
        if not values or not all(type(each) is str for each in values):
            text = f"the values of {kind.__qualname__} are neither strings nor integers only"
            raise TypeError(f"{at}: {text}, and Avro has no type for them; {USABLE}")
        if not all(map(NAME.fullmatch, values)):
            return "string"
        name = record_name(kind, self._namespace)
        return {**self._head("enum", kind.__name__), "symbols": values} if self._is_new(name, kind) else name


def branch_kind(branch: Any) -> str:
    """Returns what must be unique in a union: the full name of a named type, or the type without its logical type."""
    if not isinstance(branch, dict):
        return str(branch)
    if "name" in branch:
        space = branch.get("namespace")
        return f"{space}.{branch['name']}" if space and "." not in branch["name"] else str(branch["name"])
    return str(branch["type"])


def is_default_of(default: Any, branch: Any) -> bool:
    """Tells whether a default, as JSON has it, is one of this type."""
    kind = branch["type"] if isinstance(branch, dict) else branch
    if isinstance(branch, dict) and "logicalType" in branch:
        return False
    if kind == "enum":
        return default in branch["symbols"]
    kinds: dict[str, Any] = {
        "null": type(None),
        "boolean": bool,
        "long": int,
        "double": (int, float),
        "string": str,
        "array": list,
        "map": dict,
    }
    is_bool = isinstance(default, bool)
    return isinstance(default, kinds.get(kind, ())) and (not is_bool or kind == "boolean")


def json_default(field: ClassField) -> Any:
    """Returns a field's default as JSON has it; NODEFAULT if there is none that an Avro schema can hold."""
    if field.default_factory in (list, dict):
        return field.default_factory()
    default = field.default
    if isinstance(default, enum.Enum):
        default = default.value
    if default is None or isinstance(default, (bool, int, str)):
        return default
    return default if isinstance(default, float) and math.isfinite(default) else msgspec.NODEFAULT


def classes_in(value_type: Any) -> list[Any]:
    """Returns the classes of a union of records, or the type itself as the only one."""
    if value_type is None:
        return [None]
    kinds = [each for each in members(value_type) if each is not type(None)]
    is_of_records = all(has_fields(each) and not typing.is_typeddict(class_of(each)) for each in kinds)
    return kinds if is_union(value_type) and is_of_records else [value_type]


def named_classes(value_type: Any) -> dict[Any, set[str]]:
    """Returns the classes with fields, and the enums, that are in a type, and their names without namespace.

    A generic class has a name for each type that it is given.
    """
    found: dict[Any, set[str]] = {}
    seen: set[Any] = set()
    waiting = [value_type]
    while waiting:
        for member in members(waiting.pop()):
            if member in seen:
                continue
            seen.add(member)
            if has_fields(member):
                found.setdefault(class_of(member), set()).add(simple_name(member))
                waiting += [each.hint for each in fields_of(member)]
            elif isinstance(member, type) and issubclass(member, enum.Enum):
                found[member] = {member.__name__}
            elif pydantic_models.is_root_model(member):
                waiting.append(pydantic_models.fields_of(member)[0].hint)
            elif typing.get_origin(member) is not typing.Literal:
                waiting += [each for each in typing.get_args(member) if each is not ...]
    return found


def _decimal(hint: Any, at: str) -> dict[str, Any]:
    digits: dict[str, Any] = {}
    for each in _metadata(hint):
        extra = getattr(each, "extra", None) or {}
        precision = extra.get("precision") or getattr(each, "max_digits", None)
        scale = extra.get("scale") if "scale" in extra else getattr(each, "decimal_places", None)
        digits |= {name: value for name, value in (("precision", precision), ("scale", scale)) if value is not None}
    if "precision" not in digits:
        raise TypeError(f"{at}: {DIGITS}; or {USABLE}")
    return {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": digits["precision"],
        "scale": digits.get("scale", 0),
    }


def _metadata(hint: Any) -> Iterable[Any]:
    while typing.get_origin(hint) is typing.Annotated:
        yield from hint.__metadata__
        hint = typing.get_args(hint)[0]
