"""Classes of protobuf messages and their values: some for each kind of field, and others that Hypothesis builds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from hypothesis import strategies as st

FIELD = descriptor_pb2.FieldDescriptorProto
KNOWN = {
    f".{module.DESCRIPTOR.package}.{name}": module
    for module in (any_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    for name in module.DESCRIPTOR.message_types_by_name
}
"""The modules of the messages that come with protobuf, by their names."""
NAMES = itertools.count()
LABELS = {"repeated": FIELD.LABEL_REPEATED, "required": FIELD.LABEL_REQUIRED}
LOCAL = ("Line", "Color", "Order", "money.Amount")


class Part(NamedTuple):
    """A field: its name, its type (`int64`, `Line`, `.google.protobuf.Any`, `map<string,Line>`) and its label."""

    name: str
    kind: str
    label: str = ""
    """`repeated`, `required`, `optional` with presence, or the name of a oneof."""


def order_of(*parts: Part, syntax: str = "proto3") -> Any:
    """Returns the class of a message `Order` with these fields.

    Its file is of its own, has a message `Line` with `sku` and `next`, and an enum `Color`, and imports the message
    `Amount` of another file.
    """
    package = f"made{next(NAMES)}"
    pool = descriptor_pool.DescriptorPool()
    money = descriptor_pb2.FileDescriptorProto(name=f"{package}/money.proto", package=f"{package}.money", syntax=syntax)
    _add(money.message_type.add(name="Amount"), [Part("cents", "int64")], package, syntax)
    modules = {KNOWN[part.kind] for part in parts if part.kind in KNOWN}
    for module in modules:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}/shop.proto", package=package, syntax=syntax)
    file.dependency.extend([money.name, *(module.DESCRIPTOR.name for module in modules)])
    color = file.enum_type.add(name="Color")
    for number, name in enumerate(("RED", "GREEN", "BLUE")):
        color.value.add(name=name, number=number)
    _add(file.message_type.add(name="Line"), [Part("sku", "string"), Part("next", "Line")], package, syntax)
    _add(file.message_type.add(name="Order"), parts, package, syntax)
    for each in (money, file):
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Order"))


def _add(message: Any, parts: Iterable[Part], package: str, syntax: str) -> None:
    oneofs: dict[str, int] = {}
    present = []
    for number, part in enumerate(parts, 1):
        field = FIELD(name=part.name, number=number, label=LABELS.get(part.label, FIELD.LABEL_OPTIONAL))
        if part.kind.startswith("map<"):
            key, value = part.kind[4:-1].split(",")
            entry = message.nested_type.add(name=f"{part.name.capitalize()}Entry")
            entry.options.map_entry = True
            entry.field.append(_typed(FIELD(name="key", number=1, label=FIELD.LABEL_OPTIONAL), key, package))
            entry.field.append(_typed(FIELD(name="value", number=2, label=FIELD.LABEL_OPTIONAL), value, package))
            field.type, field.label = FIELD.TYPE_MESSAGE, FIELD.LABEL_REPEATED
            field.type_name = f".{package}.{message.name}.{entry.name}"
        else:
            _typed(field, part.kind, package)
        if part.label == "optional" and syntax == "proto3":
            field.proto3_optional = True
            present.append(field)
        elif part.label not in ("", "optional", *LABELS):
            field.oneof_index = oneofs.setdefault(part.label, len(oneofs))
        message.field.append(field)
    for name in oneofs:
        message.oneof_decl.add(name=name)
    for field in message.field:
        if field.proto3_optional:  # Protobuf keeps the presence of each in a oneof of its own, after the others.
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _typed(field: Any, kind: str, package: str) -> Any:
    if kind == "Color":
        field.type, field.type_name = FIELD.TYPE_ENUM, f".{package}.Color"
    elif kind in LOCAL:
        field.type, field.type_name = FIELD.TYPE_MESSAGE, f".{package}.{kind}"
    elif kind in KNOWN:
        field.type, field.type_name = FIELD.TYPE_MESSAGE, kind
    else:
        field.type = FIELD.Type.Value(f"TYPE_{kind.upper()}")
    return field


BITS = {"int32": 31, "sint32": 31, "sfixed32": 31, "int64": 63, "sint64": 63, "sfixed64": 63}
UNSIGNED = {"uint32": 32, "fixed32": 32, "uint64": 64, "fixed64": 64}
SCALARS = ("double", "float", "bool", "string", "bytes", "Color", *BITS, *UNSIGNED)
KEYS = ("string", "bool", "int32", "uint64", "sint64", "fixed32")


def scalars_of(kind: str) -> st.SearchStrategy[Any]:
    """Returns the values of a type that is no message."""
    if kind in BITS:
        return st.integers(-(1 << BITS[kind]), (1 << BITS[kind]) - 1)
    if kind in UNSIGNED:
        return st.integers(0, (1 << UNSIGNED[kind]) - 1)
    plain: dict[str, st.SearchStrategy[Any]] = {
        "double": st.floats(),
        "float": st.floats(width=32),
        "bool": st.booleans(),
        "string": st.text(st.characters(exclude_categories=["Cs"])),
        "bytes": st.binary(),
        "Color": st.integers(0, 7),  # An open enum keeps a number without a name.
    }
    return plain[kind]


@st.composite
def kinds(draw: st.DrawFn) -> tuple[Any, tuple[Part, ...]]:
    """Builds a class of messages, and returns its fields, too."""
    parts = []
    for number in range(draw(st.integers(1, 5))):
        label = draw(st.sampled_from(["", "optional", "repeated", "one", "map"]))
        kind = draw(st.sampled_from([*SCALARS, "Line", "Order", "money.Amount"]))
        if label == "map":
            kind, label = f"map<{draw(st.sampled_from(KEYS))},{kind}>", ""
        parts.append(Part(f"f{number}", kind, label))
    return order_of(*parts), tuple(parts)


def values_of(kind: Any, parts: tuple[Part, ...], depth: int = 3) -> st.SearchStrategy[Any]:
    """Returns the values of a class of messages with these fields."""

    @st.composite
    def value(draw: st.DrawFn) -> Any:
        message = kind()
        for part in parts:
            if not draw(st.booleans()):
                continue
            if part.kind.startswith("map<"):
                key, item = part.kind[4:-1].split(",")
                for each in draw(st.lists(scalars_of(key), max_size=2)):
                    if item in SCALARS:
                        getattr(message, part.name)[each] = draw(scalars_of(item))
                    else:
                        _fill(draw, getattr(message, part.name)[each], item, kind, parts, depth)
            elif part.kind in SCALARS:
                if part.label == "repeated":
                    getattr(message, part.name).extend(draw(st.lists(scalars_of(part.kind), max_size=3)))
                else:
                    setattr(message, part.name, draw(scalars_of(part.kind)))
            else:
                field = getattr(message, part.name)
                inside = field.add() if part.label == "repeated" else field
                inside.SetInParent()
                _fill(draw, inside, part.kind, kind, parts, depth)
        return message

    return value()


def _fill(draw: st.DrawFn, message: Any, name: str, kind: Any, parts: tuple[Part, ...], depth: int) -> None:
    if name == "Line":
        message.sku = draw(scalars_of("string"))
    elif name == "money.Amount":
        message.cents = draw(scalars_of("int64"))
    elif depth:
        message.CopyFrom(draw(values_of(kind, parts, depth - 1)))
