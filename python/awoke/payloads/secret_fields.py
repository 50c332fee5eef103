"""Finds the fields that a type marks as secret: `card: Annotated[str, awoke.Secret]`.

A type becomes the paths of its secrets in the JSON documents of its values. Where a part may be of several types, the
marks of all of them count.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import sys
import typing
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Annotated, Any

from awoke.payloads.secret_paths import EACH, SecretPaths, escaped

PATHS_MAX = 300
"""A type with more paths is secret as a whole."""
DEPTH_MAX = 30
"""Types that are deeper in each other are secret as a whole."""

HIDING = frozenset({("pydantic.types", "SecretStr"), ("pydantic.types", "SecretBytes"), ("pydantic.types", "Secret")})
"""Types of pydantic's whose values are secret as they are."""
ANNOTATED = ("__annotations__", "__annotate__", "__annotate_func__")
"""The names under which a class keeps annotations: the last two since Python 3.14, which evaluates them late."""

Bindings = Mapping[Any, Any]
"""The types that stand for type variables."""


class Secret:
    """Marks a type, mostly that of a field, whose values no console shows: `Annotated[str, awoke.Secret]`."""


def unmarked(kind: Any) -> Any:
    """Returns a type without the mark that all of it is secret, so that text stays text."""
    while typing.get_origin(kind) is Annotated:
        inner, *marks = typing.get_args(kind)
        if not all(map(is_mark, marks)):
            break
        kind = inner
    return kind


def is_mark(mark: Any) -> bool:
    """Tells whether this is the mark of secrets."""
    return mark is Secret or isinstance(mark, Secret)


def has_secrets(kind: Any) -> bool:
    """Tells whether a type, or a type within it, is marked as secret."""
    return _has_secrets(kind, {})


def masked(kind: Any, document: Any) -> Any:
    """Returns a JSON document of a value of this type in which no secret is shown."""
    return paths_of(kind).masked(document)


def paths_of(kind: Any) -> SecretPaths:
    """Returns the paths of the secrets in documents of a type; none if it has no mark."""
    if kind is None or not has_secrets(kind):
        return SecretPaths()
    walk = _Walk()
    try:
        walk.add(kind, "", True, {})
    except _TooMany:
        return SecretPaths([""])
    return SecretPaths(walk.fields, walk.optional, walk.same, walk.keyed)


class DocumentField(typing.NamedTuple):
    """A field of a class in its JSON document."""

    path: str
    """From the document of the class. A field with several names is several fields."""
    kind: Any
    is_sure: bool
    """True if each document has it."""


class _TooMany(Exception):
    pass


class _Walk:
    """Walks a type, and notes the paths of its secrets."""

    def __init__(self) -> None:
        self.fields: list[str] = []
        self.optional: list[str] = []
        self.same: list[tuple[str, str]] = []
        self.keyed: list[str] = []

    def add(self, kind: Any, at: str, is_sure: bool, above: Mapping[Hashable, str]) -> None:
        """Adds the secrets of a type at a path; `above` has the paths of the classes that it is in."""
        members = list(_members(kind))
        if Secret in members:
            self._note(at, is_sure)
            return
        for each in members:
            if not has_secrets(each):
                continue
            if len(above) > DEPTH_MAX:
                self._note(at, False)
            else:
                self._add_within(each, at, is_sure and len(members) == 1, above)

    def _add_within(self, kind: Any, at: str, is_sure: bool, above: Mapping[Hashable, str]) -> None:
        origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
        if not _has_known_paths(kind, origin):
            self._note(at, is_sure)
            return
        fields = _fields_of(origin)
        if fields is None:
            self._add_elements(kind, at, is_sure, above)
            return
        key = kind if isinstance(kind, Hashable) else id(kind)
        if key in above:
            self.same.append((at, above[key]))
            return
        bindings = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
        for each in fields:
            inner = _bound(each.kind, bindings)
            self.add(inner, at + each.path, is_sure and each.is_sure, {**above, key: at})

    def _add_elements(self, kind: Any, at: str, is_sure: bool, above: Mapping[Hashable, str]) -> None:
        inner = typing.get_args(kind)
        above = {**above, (at, len(above)): at}  # It counts as a level.
        *keys, values = [each for each in inner if each is not Ellipsis]
        if any(map(has_secrets, keys)):
            self.keyed.append(at)
            self._note(at, is_sure)
        else:
            self.add(values, f"{at}/{EACH}", is_sure, above)

    def _note(self, path: str, is_sure: bool) -> None:
        (self.fields if is_sure else self.optional).append(path)
        if len(self.fields) + len(self.optional) + len(self.same) > PATHS_MAX:
            raise _TooMany


def _has_known_paths(kind: Any, origin: Any) -> bool:
    """Tells whether the places of a type's parts in its documents are known; if not, all of a value counts as secret.

    They are those of the fields of a class that is an object in JSON, and those of lists and mappings. A tuple, a named
    tuple and a class that is an array may be written by place or by name, a root model has none, and a serializer of a
    model's own writes what it likes.
    """
    if _fields_of(origin) is None:
        is_fixed = origin is tuple and Ellipsis not in typing.get_args(kind)
        return isinstance(origin, type) and issubclass(origin, collections.abc.Iterable) and not is_fixed
    if issubclass(origin, tuple) or getattr(getattr(origin, "__struct_config__", None), "array_like", False):
        return False
    own = getattr(origin, "__pydantic_decorators__", None)
    serializes = own is not None and (own.model_serializers or own.field_serializers or own.computed_fields)
    return not serializes and not getattr(origin, "__pydantic_root_model__", False)


def _has_secrets(kind: Any, seen: dict[int, Any]) -> bool:
    """`seen` keeps the types: another one could get the identity of a type that is gone."""
    for each in _members(kind):
        if each is Secret:
            return True
        if id(each) in seen:
            continue
        seen[id(each)] = each
        fields = _fields_of(typing.get_origin(each) or each)
        inner = (*typing.get_args(each), *(field.kind for field in fields or ()))
        if any(_has_secrets(part, seen) for part in inner):
            return True
    return False


def _members(kind: Any) -> Iterator[Any]:
    """Yields the types of a union, and a type that is none as the only one; `Secret` for one that is marked."""
    origin = typing.get_origin(kind)
    if hasattr(origin, "__value__"):  # A type alias with arguments.
        kind = _bound(origin.__value__, dict(zip(origin.__type_params__, typing.get_args(kind), strict=False)))
    else:
        kind = getattr(kind, "__value__", kind)
    origin = typing.get_origin(kind)
    if origin is Annotated:
        inner, *marks = typing.get_args(kind)
        yield from (Secret,) if any(map(is_mark, marks)) else _members(inner)
    elif isinstance(kind, typing.NewType):
        yield from _members(kind.__supertype__)
    elif isinstance(kind, typing.TypeVar):
        for each in kind.__constraints__ or (kind.__bound__,):
            yield from _members(each)
    elif origin is typing.Union or type(kind).__name__ == "UnionType":
        for each in typing.get_args(kind):
            yield from _members(each)
    elif origin in (typing.Required, typing.NotRequired, typing.ClassVar):
        yield from _members(typing.get_args(kind)[0])
    elif _name_of(origin or kind) in HIDING:
        yield Secret  # Its values are asterisks in one place, and themselves in another.
    elif kind is not None:
        yield kind


def _name_of(kind: Any) -> tuple[str, str] | None:
    return (kind.__module__, kind.__qualname__) if isinstance(kind, type) else None


def _bound(kind: Any, bindings: Bindings) -> Any:
    """Returns a type whose type variables are replaced by the types that stand for them."""
    if kind in bindings if isinstance(kind, typing.TypeVar) else False:
        return bindings[kind]
    variables = getattr(kind, "__parameters__", ()) if typing.get_origin(kind) is not None else ()
    if not any(each in bindings for each in variables):
        return kind
    return kind[tuple(bindings.get(each, each) for each in variables)]


def _bindings_of(kind: type) -> Bindings:
    """Returns the types that a class gives to the type variables of its bases."""
    found: dict[Any, Any] = {}
    for each in kind.__mro__:
        for base in vars(each).get("__orig_bases__", ()):
            variables = getattr(typing.get_origin(base), "__parameters__", ())
            for variable, given in zip(variables, typing.get_args(base), strict=False):
                if given is not variable:
                    found[variable] = typing.Union[found.get(variable, given), given]  # noqa: UP007
    return found


def _fields_of(kind: Any) -> tuple[DocumentField, ...] | None:
    """Returns the fields of a class with annotations; None of another type."""
    if not isinstance(kind, type) or not any(name in vars(each) for each in kind.__mro__ for name in ANNOTATED):
        return None
    return _fields_of_class(kind)


@functools.lru_cache(1_000)
def _fields_of_class(kind: Any) -> tuple[DocumentField, ...]:
    try:
        hints, sure = typing.get_type_hints(kind, include_extras=True), _sure_names(kind)
    except (NameError, TypeError, AttributeError, ImportError):
        # A name that can't be resolved may hide a mark: all fields count as secret.
        hints = {name: Annotated[Any, Secret] for each in kind.__mro__ for name in _own_names(each)}
        sure = set()
    bindings = _bindings_of(kind)
    for _ in bindings:  # A type that stands for a variable may have one itself.
        hints = {name: _bound(each, bindings) for name, each in hints.items()}
    models = getattr(kind, "model_fields", None) or getattr(kind, "__pydantic_fields__", None)
    if models:
        return tuple(_fields_of_model(models, hints))
    names = getattr(kind, "__struct_fields__", tuple(hints))
    encoded = getattr(kind, "__struct_encode_fields__", names)
    pairs = {to: (hints[name], name in sure) for name, to in zip(names, encoded, strict=False) if name in hints}
    others = {name: (each, False) for name, each in hints.items() if name not in pairs}
    return tuple(DocumentField(f"/{escaped(name)}", *each) for name, each in (pairs | others).items())


def _own_names(kind: type) -> Iterable[str]:
    """Returns the names of a class's own annotations, also if these can't be resolved."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(kind, format=annotationlib.Format.STRING)
    found: Iterable[str] = vars(kind).get("__annotations__", ())
    return found


def _fields_of_model(models: Mapping[str, Any], hints: Mapping[str, Any]) -> Iterator[DocumentField]:
    """Yields the fields of a class of pydantic's, under each name that it reads or writes."""
    for name, field in models.items():
        marks = [each for each in field.metadata if is_mark(each)]
        kind = field.annotation if field.annotation is not None else hints.get(name, Any)
        # The annotation has the types of a generic class, the hint the marks of a name that is resolved late.
        for each in (kind, hints.get(name, kind)):
            marked = Annotated[(each, *marks)] if marks else each
            paths = _paths_of_model(name, field)
            yield from (DocumentField(path, marked, len(paths) == 1 and field.is_required()) for path in paths)


def _paths_of_model(name: str, field: Any) -> set[str]:
    validated = field.validation_alias
    aliases = [field.alias, field.serialization_alias, *getattr(validated, "choices", (validated,)), name]
    found = {f"/{escaped(each)}" for each in aliases if isinstance(each, str)}
    words = [each.path for each in aliases if hasattr(each, "path")]
    return found | {"".join(f"/{escaped(str(word))}" for word in each) for each in words}


def _sure_names(kind: Any) -> set[str]:
    """Returns the fields that each document of a class has."""
    if hasattr(kind, "__struct_fields__"):
        return {each.name for each in sys.modules["msgspec"].structs.fields(kind) if each.required}
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        return {
            each.name for each in dataclasses.fields(kind) if (each.default, each.default_factory) == (missing,) * 2
        }
    if hasattr(kind, "__required_keys__"):
        wanted = typing.get_type_hints(kind, include_extras=True)
        return {each for each in kind.__required_keys__ if typing.get_origin(wanted[each]) is not typing.NotRequired}
    if hasattr(kind, "_field_defaults"):
        return set(kind._fields) - set(kind._field_defaults)
    return set()
