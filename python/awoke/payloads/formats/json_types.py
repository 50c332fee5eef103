"""Checks types for parts that JSON can't hold, before the first message comes.

msgspec takes any class as a type, but reads no values of a class that it does not know.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from typing import Any

import msgspec
import msgspec.inspect as described

from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.class_fields import private_in
from awoke.payloads.formats.model_round_trips import check_round_trip, check_told_apart

JSON = (dict, list, str, int, float, bool, type(None))
"""The types to which msgspec reads JSON of an unknown type."""

WRITABLE = (str, bytes, dict, list, tuple, set, frozenset)
"""Classes of which msgspec writes derived ones, too, or librdkafka takes the value as it is."""

UNORDERED = (described.SetType, described.FrozenSetType)
NO_KEYS = (
    described.StructType,
    described.DataclassType,
    described.TypedDictType,
    described.NamedTupleType,
    described.TupleType,
    described.VarTupleType,
    described.ListType,
    described.DictType,
    *UNORDERED,
)
"""Types that are neither text nor number, and so can't be a key of a JSON object."""
NO_MEMBERS = (described.ListType, described.DictType, described.TypedDictType, described.SetType)
"""Types that can't be in a set, because they have no hash."""

USABLE = (
    "use bytes, str, a type that msgspec reads from JSON (int, list[int], dict[str, int], an enum, a datetime, a "
    "msgspec.Struct, dataclass, TypedDict, NamedTuple or attrs class), or a pydantic model"
)


def check_readable(kind: Any) -> None:
    """Checks that values of this type can be read from JSON.

    Raises:
        TypeError: Names the part that can't be, and what can be used.
    """
    try:
        if pydantic_models.mentions_model(kind):
            pydantic_models.decoder_for(kind)
            check_told_apart(kind)
            return
        info = msgspec.inspect.type_info(kind)
    except (TypeError, ValueError, NameError, msgspec.MsgspecError) as error:
        raise TypeError(f"{error}; {USABLE}") from None
    problem = next(_problems(info, _is_readable), None)
    if problem is not None:
        raise TypeError(f"{problem} can't be read from JSON; {USABLE}")


def check_writable(kind: Any) -> None:
    """Checks that values of this type are not certainly of a class that JSON can't hold, or that reads other values.

    Raises:
        TypeError: Names the part that can't be written, and what can be used.
    """
    for each in typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,):
        check_round_trip(each)
        if (private := private_in(each)) is not None:
            raise TypeError(f"{private} begins with an underscore: msgspec neither writes nor reads it")
        if pydantic_models.mentions_model(each):
            continue
        try:
            info = msgspec.inspect.type_info(each)
        except Exception:
            continue  # msgspec may write what it can't read, as values of two classes without tags.
        problem = next(_problems(info, _is_writable), None)
        if problem is not None:
            raise TypeError(f"{problem} can't be written as JSON; {USABLE}")


def _problems(info: Any, is_usable: Callable[[Any], bool]) -> Iterator[str]:
    """Yields the parts of a type that msgspec can't use, each with its place, the outermost first."""
    seen: set[int] = set()
    waiting = [("", info)]
    while waiting:
        at, node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, described.CustomType):
            if not is_usable(node.cls):
                yield f"{at}{_name(node.cls)}"
        elif isinstance(node, described.DictType) and all(isinstance(key, NO_KEYS) for key in _members(node.key_type)):
            yield f"{at}a dict whose keys are neither text nor numbers"
        elif isinstance(node, UNORDERED) and any(map(_has_no_hash, _members(node.item_type))):
            yield f"{at}a set whose members can't be hashed"
        waiting += _parts(at, node)


def _parts(at: str, node: Any) -> list[tuple[str, Any]]:
    if isinstance(
        node, (described.StructType, described.DataclassType, described.TypedDictType, described.NamedTupleType)
    ):
        return [(f"{_name(node.cls)}.{field.name}: ", field.type) for field in node.fields]
    found: list[tuple[str, Any]] = []
    for name in node.__struct_fields__:
        part = getattr(node, name)
        found += [
            (at, each) for each in (part if isinstance(part, tuple) else (part,)) if isinstance(each, described.Type)
        ]
    return found


def _members(node: Any) -> tuple[Any, ...]:
    return tuple(node.types) if isinstance(node, described.UnionType) else (node,)


def _has_no_hash(node: Any) -> bool:
    if isinstance(node, described.StructType):
        return not node.cls.__struct_config__.frozen
    return isinstance(node, NO_MEMBERS) or (isinstance(node, described.DataclassType) and node.cls.__hash__ is None)


def _is_readable(kind: type) -> bool:
    return pydantic_models.is_model(kind) or any(_is_sub(each, kind) for each in JSON)


def _is_writable(kind: type) -> bool:
    if _is_sub(kind, Iterator) or _is_sub(kind, AsyncIterable) or _is_sub(kind, Awaitable):
        return False
    is_open = inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    return is_open or _is_readable(kind) or any(_is_sub(kind, each) for each in WRITABLE)


def _is_sub(kind: type, other: type) -> bool:
    try:
        return issubclass(kind, other)
    except TypeError:
        return True  # A protocol that can't be asked.


def _name(kind: Any) -> str:
    module = getattr(kind, "__module__", "builtins")
    name = getattr(kind, "__qualname__", str(kind))
    return str(name if module == "builtins" else f"{module}.{name}")
