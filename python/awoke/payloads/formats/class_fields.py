"""The fields of classes of any library: structs, dataclasses, attrs classes, typed dicts, models of pydantic's."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from awoke.payloads.formats import pydantic_models

NUMBERS: dict[type, tuple[type, ...]] = {float: (float, int), set: (set, frozenset), list: (list, tuple)}
"""The classes of builtin values that are taken for others: they are written alike."""
MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
UNIONS = (typing.Union, types.UnionType)


class ClassField(NamedTuple):
    """One field of a class."""

    attribute: str
    name: str
    """Its name in what is written."""
    hint: Any
    """Its type, as the class declares it."""
    default: Any = msgspec.NODEFAULT
    default_factory: Callable[[], Any] | None = None
    is_computed: bool = False
    """True if it is written and never read."""
    is_argument: bool = True
    """True if the class takes it when it is called."""


def has_fields(hint: Any) -> bool:
    """Tells whether this is a class whose values are records."""
    kind = class_of(hint)
    if not isinstance(kind, type):
        return False
    if pydantic_models.is_model(kind):
        return not pydantic_models.is_root_model(kind)
    is_struct = issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct
    return is_struct or dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__") or typing.is_typeddict(kind)


def class_of(hint: Any) -> Any:
    """Returns the class in `Box` or `Box[int]`."""
    origin = typing.get_origin(hint)
    return origin if isinstance(origin, type) and not isinstance(hint, type) else hint


def plain_hint(hint: Any) -> Any:
    """Returns a type without what stands around it: `Annotated`, `NewType`, a name given by `type`, `Required`."""
    while True:
        if typing.get_origin(hint) in (typing.Annotated, typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif isinstance(hint, typing.TypeVar):
            hint = hint.__bound__ if hint.__bound__ is not None else Any
        elif hasattr(hint, "__value__"):
            hint = hint.__value__
        else:
            return hint


def members(hint: Any) -> list[Any]:
    """Returns the types of a union, also of one within another; or the type itself as the only one."""
    hint = plain_hint(hint)
    if typing.get_origin(hint) not in UNIONS:
        return [hint]
    return [member for each in typing.get_args(hint) for member in (members(each) if is_union(each) else [each])]


def is_union(hint: Any) -> bool:
    """Tells whether this is a union, whatever stands around it."""
    return typing.get_origin(plain_hint(hint)) in UNIONS


@functools.lru_cache(maxsize=1_024)
def fields_of(hint: Any) -> tuple[ClassField, ...]:
    """Returns the fields of a class for which `has_fields` is true.

    Raises:
        TypeError, NameError: The type of one is not defined.
    """
    kind = class_of(hint)
    if pydantic_models.is_model(kind):
        return tuple(
            ClassField(each.attribute, each.written, each.hint, each.default, is_computed=each.is_computed)
            for each in pydantic_models.fields_of(kind)
        )
    hints = _hints(hint)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return tuple(
            ClassField(each.name, each.encode_name, hints[each.name], each.default, _factory(each.default_factory))
            for each in msgspec.structs.fields(kind)
        )
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(_attrs_field(each, hints) for each in kind.__attrs_attrs__)
    if typing.is_typeddict(kind):
        return tuple(ClassField(name, name, each) for name, each in hints.items())
    return tuple(
        ClassField(
            each.name,
            each.name,
            hints[each.name],
            msgspec.NODEFAULT if each.default is dataclasses.MISSING else each.default,
            _factory(each.default_factory),
            is_argument=each.init,
        )
        for each in dataclasses.fields(kind)
    )


def has_named_union(hint: Any) -> bool:
    """Tells whether a type has a union of several classes with fields in it."""
    seen: set[Any] = set()
    waiting = [hint]
    while waiting:
        kinds = members(waiting.pop())
        if sum(has_fields(kind) or typing.get_origin(kind) in MAPS for kind in kinds) > 1:
            return True
        for kind in kinds:
            if kind in seen:
                continue
            seen.add(kind)
            if has_fields(kind) or pydantic_models.is_root_model(kind):
                waiting += [each.hint for each in fields_of(kind)]
            elif typing.get_origin(kind) is not typing.Literal:
                waiting += [each for each in typing.get_args(kind) if each is not ...]
    return False


def private_in(hint: Any) -> str | None:
    """Returns a field that msgspec neither writes nor reads: one of an attrs class that begins with an underscore."""
    for kind in classes_in(hint):
        for field in getattr(class_of(kind), "__attrs_attrs__", ()):
            if field.name.startswith("_"):
                return f"{class_of(kind).__qualname__}.{field.name}"
    return None


def classes_in(hint: Any) -> list[Any]:
    """Returns the classes with fields that are in a type, each once."""
    found: dict[Any, None] = {}
    waiting = [hint]
    while waiting:
        for member in members(waiting.pop()):
            if has_fields(member):
                if member not in found:
                    found[member] = None
                    waiting += [each.hint for each in fields_of(member)]
            elif typing.get_origin(member) is not typing.Literal:
                waiting += [each for each in typing.get_args(member) if each is not ...]
    return list(found)


def reads_by_own_code(hint: Any) -> bool:
    """Tells whether code of a class in a type may change what is read. Models of pydantic's are not looked at."""
    try:
        kinds = [class_of(kind) for kind in classes_in(hint)]
    except (TypeError, NameError):  # The type of a field is not defined.
        return False
    names = ("__post_init__", "__attrs_post_init__")
    return any(hasattr(kind, name) for kind in kinds if not pydantic_models.is_model(kind) for name in names)


def takes_class(hint: Any, kind: type) -> bool:
    """Tells whether a value of a class may be one of a type: of a class with fields only that class, of others any."""
    for member in members(hint):
        expected = class_of(member)
        if expected in (Any, object) or not isinstance(expected, type):
            return True  # A literal, a protocol and the like: its values tell more than their class.
        if typing.is_typeddict(expected):
            expected = dict
        if has_fields(expected) or has_fields(kind):
            if kind is expected:
                return True
        elif not kind.__module__.startswith("builtins") or issubclass(kind, NUMBERS.get(expected, expected)):
            return True
    return False


def names_of(hint: Any) -> str:
    """Returns the names of the types that a value may be of, for errors."""
    return ", ".join(sorted(getattr(each, "__qualname__", str(each)) for each in members(hint)))


def is_same(one: Any, other: Any) -> bool:
    """Tells whether two values are equal and of the same classes, by what is written of them: not by private parts."""
    if type(one) is not type(other):
        return False
    if has_fields(type(one)):
        kind: Any = type(one)
        names = [each.attribute for each in fields_of(kind) if not each.is_computed]
        extras = [getattr(each, "__pydantic_extra__", None) for each in (one, other)]
        return is_same(*extras) and all(is_same(getattr(one, each, None), getattr(other, each, None)) for each in names)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(each, other[key]) for key, each in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other) or (one != one and other != other)  # The second one: not a number.


def _attrs_field(field: Any, hints: dict[str, Any]) -> ClassField:
    attr: Any = sys.modules["attr"]  # Imported by the class's own module.
    default: Any = field.default
    factory: Callable[[], Any] | None = None
    if default is attr.NOTHING:
        default = msgspec.NODEFAULT
    elif isinstance(default, attr.Factory):
        default, factory = msgspec.NODEFAULT, None if default.takes_self else default.factory
    return ClassField(field.name, field.name, hints[field.name], default, factory, is_argument=field.init)


def _factory(factory: Any) -> Callable[[], Any] | None:
    return None if factory in (msgspec.NODEFAULT, dataclasses.MISSING) else factory


def _hints(hint: Any) -> dict[str, Any]:
    """Returns the types of a class's attributes, with those that a generic class was given."""
    kind = class_of(hint)
    found = typing.get_type_hints(kind, include_extras=True)
    given = dict(zip(getattr(kind, "__parameters__", ()), typing.get_args(hint), strict=False))
    return {name: _filled(each, given) for name, each in found.items()} if given else found


def _filled(hint: Any, given: dict[Any, Any]) -> Any:
    if hint in given:
        return given[hint]
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(given.get(each, each) for each in parameters)] if parameters else hint
