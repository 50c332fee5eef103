"""Finds the fields of types that are secret, and masks them in documents that people see."""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from awoke.errors import ConfigError
from awoke.secrets import HIDDEN

ANY = "*"
"""In a path: each element of a list, and each value of a mapping."""
QUALIFIERS = [found for name in ("Required", "NotRequired", "ReadOnly") if (found := getattr(typing, name, None))]
"""The words about the fields of typed dictionaries."""
PATHS_MAX = 500
"""A type with more secret fields is secret as a whole."""


class Secret:
    """Marks a field of a message whose content the console shows to no one: `number: Annotated[str, awoke.Secret]`.

    The console masks it wherever it shows messages. Handlers get it as it is.
    """


Path = tuple[str, ...]
"""The names on the way to a field; an empty one is the whole document."""


class Masks(NamedTuple):
    """The secret fields of the messages of a topic."""

    value: tuple[Path, ...] = ()
    key: tuple[Path, ...] = ()

    def __or__(self, other: Any) -> Masks:
        """Returns the fields of both."""
        value, key = (tuple(dict.fromkeys([*ours, *its])) for ours, its in zip(self, other, strict=True))
        return Masks(value, key)

    def __bool__(self) -> bool:
        return bool(self.value or self.key)

    @classmethod
    def of(cls, value: Any, key: Any) -> Masks:
        """Returns the secret fields of these types; None says none."""
        return cls(secret_paths(value), secret_paths(key))


def unmarked(kind: Any) -> Any:
    """Returns a type without the mark that all of it is secret, so that text stays text."""
    while typing.get_origin(kind) is typing.Annotated and all(map(_is_mark, kind.__metadata__)):
        kind = kind.__origin__
    return kind


def secret_paths(kind: Any) -> tuple[Path, ...]:
    """Returns the paths of the secret fields of a type, by their names in the type and in JSON. Does not block."""
    found = tuple(dict.fromkeys(_paths(kind, ())))
    return ((),) if () in found or len(found) > PATHS_MAX else found


def masked(document: Any, paths: Sequence[Path]) -> Any:
    """Returns a JSON document whose fields at these paths are masked.

    A value of another shape than its type has is masked as a whole: it may be the secret.
    """
    if not paths or document is None:
        return document
    if isinstance(document, dict) and () not in paths:
        return {name: masked(value, _below(paths, name)) for name, value in document.items()}
    if isinstance(document, list) and () not in paths:
        named = [path for path in paths if path[0] != ANY and not path[0].isdecimal()]
        return [masked(each, [*_below(paths, str(place)), *named]) for place, each in enumerate(document)]
    return HIDDEN


def restored(edited: Any, original: Any, paths: Sequence[Path], at: str = "") -> Any:
    """Returns an edited document with the original contents of fields that are still masked.

    Raises:
        ConfigError: The original has no such field.
    """
    if not paths:
        return edited
    if edited == HIDDEN and masked(original, paths) == HIDDEN:
        return original
    if edited == HIDDEN:
        raise ConfigError(f"the field {at or 'value'!r} is masked, and the original has none to put there", "value")
    if isinstance(edited, dict) and () not in paths:
        olds = original if isinstance(original, dict) else {}
        return {
            name: restored(value, olds.get(name), _below(paths, name), f"{at}.{name}".lstrip("."))
            for name, value in edited.items()
        }
    if isinstance(edited, list) and () not in paths:
        old = original if isinstance(original, list) else []
        named = [path for path in paths if path[0] != ANY and not path[0].isdecimal()]
        return [
            restored(each, old[place] if place < len(old) else None, [*_below(paths, str(place)), *named], f"{at}.*")
            for place, each in enumerate(edited)
        ]
    return edited


def _below(paths: Iterable[Path], name: str) -> list[Path]:
    return [path[1:] for path in paths if path and path[0] in (name, ANY)]


def _is_mark(each: Any) -> bool:
    return each is Secret or isinstance(each, Secret)


def _paths(kind: Any, above: tuple[Any, ...]) -> Iterator[Path]:
    """Yields the paths of a type; `above` are the types that contain it."""
    kind = getattr(kind, "__value__", kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        if any(map(_is_mark, kind.__metadata__)):
            yield ()
        yield from _paths(kind.__origin__, above)
    elif isinstance(kind, typing.NewType):
        yield from _paths(kind.__supertype__, above)
    elif origin in (typing.Union, types.UnionType, *QUALIFIERS):
        for each in arguments:
            yield from _paths(each, above)
    elif is_pydantic_secret(kind):
        yield ()
    elif isinstance(origin or kind, type) and _has_fields(origin or kind):
        if kind in above:  # A type within itself, with secrets at any depth.
            if _has_secret(kind, set()):
                yield ()
            return
        for names, field in _fields(kind):
            for path in _paths(field, (*above, kind)):
                yield from ((name, *path) for name in names)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        if _has_secret(arguments[0], set()):
            yield ()
        yield from ((ANY, *path) for path in _paths(arguments[-1], above))
    elif origin is tuple and Ellipsis not in arguments:
        for place, each in enumerate(arguments):
            yield from ((str(place), *path) for path in _paths(each, above))
    elif isinstance(origin, type) and origin is not type:
        for each in arguments:
            yield from ((ANY, *path) for path in _paths(each, above))


def _has_secret(kind: Any, seen: set[Any]) -> bool:
    """Tells whether a type has a secret at any depth; `seen` are the classes that were looked at."""
    kind = getattr(kind, "__value__", kind)
    if typing.get_origin(kind) is typing.Annotated and any(map(_is_mark, kind.__metadata__)):
        return True
    if isinstance(kind, typing.NewType):
        return _has_secret(kind.__supertype__, seen)
    if is_pydantic_secret(kind) or any(_has_secret(each, seen) for each in typing.get_args(kind)):
        return True
    found = typing.get_origin(kind) or kind
    if not isinstance(found, type) or not _has_fields(found) or kind in seen:
        return False
    seen.add(kind)
    return any(_has_secret(each, seen) for _, each in _fields(kind))


def is_pydantic_secret(kind: Any) -> bool:
    """Tells whether a type is `SecretStr` or the like of pydantic."""
    is_its = isinstance(kind, type) and kind.__module__.partition(".")[0] == "pydantic"
    return is_its and kind.__name__.startswith("Secret")


def _has_fields(kind: type) -> bool:
    names = {name for each in kind.__mro__ for name in vars(each)}
    return kind.__module__ != "builtins" and not names.isdisjoint(("__annotations__", "__annotate_func__"))


def _fields(kind: Any) -> Iterator[tuple[set[str], Any]]:
    """Yields the names and the type of each field of a class."""
    found = typing.get_origin(kind) or kind
    if issubclass(found, msgspec.Struct):
        config = found.__struct_config__
        first = int(config.tag is not None)
        for place, each in enumerate(msgspec.structs.fields(kind)):
            names = {str(place + first)} if config.array_like else {each.name, each.encode_name}
            yield names, each.type
        return
    places = {name: str(place) for place, name in enumerate(getattr(found, "_fields", ()))}  # A named tuple is a list.
    models = getattr(found, "model_fields", {})
    for name, hint in _hints(found).items():
        model = models.get(name)
        aliases = [getattr(model, each, None) for each in ("alias", "validation_alias", "serialization_alias")]
        names = {name, *(each for each in aliases if isinstance(each, str))}
        yield names | ({places[name]} if name in places else set()), hint


@functools.lru_cache(1_000)
def _hints(kind: type) -> Mapping[str, Any]:
    """Returns the annotations of a class; those that can't be resolved and name the mark are secret."""
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # The annotations are user code: a name in them may exist for type checkers only.
        texts = {name: text for each in kind.__mro__ for name, text in _texts(each).items()}
        return {name: typing.Annotated[Any, Secret] for name, text in texts.items() if "Secret" in text}


def _texts(kind: type) -> Mapping[str, str]:
    """Returns the annotations of a class as their texts."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(kind, format=Format.STRING)
    return {name: str(hint) for name, hint in vars(kind).get("__annotations__", {}).items()}
