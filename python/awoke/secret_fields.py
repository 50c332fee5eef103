"""Masks the fields of decoded values that their type marks as secret: `card: Annotated[str, awoke.Secret]`.

A type is walked beside the JSON document that was made of a value. Where a part may be of several types, the marks of
all of them count.
"""

from __future__ import annotations

import functools
import itertools
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from awoke.secrets import HIDDEN


class Secret:
    """Marks a type, mostly that of a field, whose values no console shows: `Annotated[str, awoke.Secret]`."""


def unmarked(kind: Any) -> Any:
    """Returns a type without the mark that all of it is secret, so that text stays text."""
    while typing.get_origin(kind) is Annotated:
        inner, *marks = typing.get_args(kind)
        if not all(each is Secret or isinstance(each, Secret) for each in marks):
            break
        kind = inner
    return kind


class Fields(typing.NamedTuple):
    """The fields of a class in its JSON document."""

    by_name: Mapping[str, Any]
    """The type of each. A field with an alias has it by both names."""
    in_order: tuple[Any, ...]
    """The types where the document is a list; None for a tag, which comes first."""


def has_secrets(kind: Any) -> bool:
    """Tells whether a type, or a type within it, is marked as secret."""
    return _has_secrets(kind, set())


def masked(kind: Any, document: Any) -> Any:
    """Returns a JSON document of a value of this type in which no secret is shown."""
    if document is None or not has_secrets(kind):
        return document
    for each in _members(kind):
        document = HIDDEN if each is Secret else _masked_within(each, document)
    return document


def _masked_within(kind: Any, document: Any) -> Any:
    fields = _fields_of(typing.get_origin(kind) or kind)
    inner = [each for each in typing.get_args(kind) if each is not Ellipsis]
    if isinstance(document, dict):
        values = inner[-1:] if fields is None else []
        named = {} if fields is None else fields.by_name
        return {name: _masked_by((*values, named.get(name)), each) for name, each in document.items()}
    if isinstance(document, list):
        if fields is None:
            return [_masked_by(inner, each) for each in document]
        return [masked(each, part) for each, part in itertools.zip_longest(fields.in_order, document)][: len(document)]
    return document


def _masked_by(kinds: typing.Iterable[Any], document: Any) -> Any:
    return functools.reduce(lambda found, kind: masked(kind, found), kinds, document)


def _has_secrets(kind: Any, seen: set[int]) -> bool:
    for each in _members(kind):
        if each is Secret:
            return True
        if id(each) in seen:
            continue
        seen.add(id(each))
        fields = _fields_of(typing.get_origin(each) or each)
        inner = (*typing.get_args(each), *(fields.by_name.values() if fields else ()))
        if any(_has_secrets(part, seen) for part in inner):
            return True
    return False


def _members(kind: Any) -> Iterator[Any]:
    """Yields the types of a union, and a type that is none as the only one; `Secret` for one that is marked."""
    kind = getattr(kind, "__value__", kind)
    origin = typing.get_origin(kind)
    if origin is Annotated:
        inner, *marks = typing.get_args(kind)
        yield from (Secret,) if any(each is Secret or isinstance(each, Secret) for each in marks) else _members(inner)
    elif isinstance(kind, typing.NewType):
        yield from _members(kind.__supertype__)
    elif origin is typing.Union or type(kind).__name__ == "UnionType":
        for each in typing.get_args(kind):
            yield from _members(each)
    elif origin in (typing.Required, typing.NotRequired, typing.ClassVar):
        yield from _members(typing.get_args(kind)[0])
    elif kind is not None:
        yield kind


@functools.lru_cache(1_000)
def _fields_of(kind: Any) -> Fields | None:
    """Returns the fields of a class with annotations; None of another type."""
    if not isinstance(kind, type) or not any("__annotations__" in vars(each) for each in kind.__mro__):
        return None
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError, AttributeError, ImportError):
        # A name that can't be resolved may hide a mark: all fields count as secret.
        hints = {
            name: Annotated[Any, Secret] for each in kind.__mro__ for name in vars(each).get("__annotations__", ())
        }
    names = getattr(kind, "__struct_fields__", tuple(hints))
    encoded = getattr(kind, "__struct_encode_fields__", names)
    found = dict(hints) | {to: hints[name] for name, to in zip(names, encoded, strict=False) if name in hints}
    for name, field in (getattr(kind, "model_fields", None) or {}).items():  # Of pydantic.
        found |= {to: hints[name] for to in (field.alias, field.serialization_alias) if to and name in hints}
    is_tagged = getattr(getattr(kind, "__struct_config__", None), "tag", None) is not None
    return Fields(found, (*[None] * is_tagged, *(hints.get(name) for name in names)))
