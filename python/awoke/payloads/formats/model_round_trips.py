"""Whether a type of pydantic's reads what it writes: its aliases, computed fields, serializers and secrets may differ.

`round_trip` finds it in the core schema, by which pydantic itself works. Some types never read what they write: they
are refused. Of some it depends on the value: each of these is read again before it is sent.
"""

from __future__ import annotations

import functools
import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.class_fields import fields_of, has_fields, members, plain_hint
from awoke.payloads.formats.format import Direction

SURE = frozenset(
    (
        *("none", "bool", "int", "str", "bytes", "float", "decimal", "datetime", "date", "time", "uuid", "enum"),
        *("literal", "nullable", "default", "list", "tuple", "set", "frozenset", "dict", "union", "tagged-union"),
        *("model", "model-fields", "model-field", "dataclass", "dataclass-args", "dataclass-field"),
        *("typed-dict", "typed-dict-field", "definitions", "definition-ref"),
    )
)
"""The kinds of nodes that read what they write, whatever the value is, if nothing below says otherwise."""
NAMING = ("model-fields", "dataclass-args", "typed-dict")
CHANGING = ("strip_whitespace", "to_lower", "to_upper", "coerce_numbers_to_str", "post_init", "validation")
"""Options of nodes by which a value that was not validated, such as a default, is read as another one."""
SURE_SETTINGS = frozenset(
    (
        *("title", "extra_fields_behavior", "validate_by_alias", "validate_by_name", "populate_by_name", "strict"),
        *("frozen", "from_attributes", "loc_by_alias", "revalidate_instances", "validate_default"),
        *("hide_input_in_errors", "serialize_by_alias"),
    )
)
"""The settings of a model that change nothing about what is written and read again."""
TOLD_APART = ("none", "bool", "int", "float", "str")
"""The kinds whose values JSON tells apart, so that a union of them is no doubt."""


class RoundTrip(NamedTuple):
    """What is known about reading what a type has written."""

    problem: str | None
    """Why it can't be read, whatever the value is."""
    is_sure: bool
    """True if each value is read as it was, except that a number that is not finite may be written as null."""
    has_numbers: bool
    """True if there are numbers that may be not finite."""
    has_times: bool
    has_serializers: bool
    """True if the user's code writes a part of it."""


@functools.lru_cache(maxsize=1_024)
def round_trip(kind: Any) -> RoundTrip:
    """Returns what is known about a type of pydantic's.

    Raises:
        TypeError: pydantic can't read this type.
    """
    problem, is_sure, has_numbers, has_times, has_serializers = None, True, False, False, False
    for node, is_serialized in _nodes(pydantic_models.core_schema_of(kind)):
        problem = problem or next(_problems(node, is_serialized), None)
        is_sure = is_sure and _is_sure(node)
        has_numbers = has_numbers or node["type"] in ("float", "decimal")
        has_times = has_times or node["type"] in ("datetime", "time")
        has_serializers = has_serializers or has_own_serializer(node)
    return RoundTrip(problem, is_sure and problem is None, has_numbers, has_times, has_serializers)


def check_round_trip(kind: Any, direction: Direction = "both") -> None:
    """Checks that a type reads what it writes, as far as pydantic reads it, unless it does only one of both.

    Raises:
        TypeError: It does not, whatever the value is.
    """
    if direction != "both":
        return
    for model in models_in(kind):
        problem = round_trip(model).problem
        if problem is not None:
            raise TypeError(f"{problem}; a type that is only read, or only written, needs direction='read' or 'write'")


def _nodes(schema: Any) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yields the nodes of a core schema, and of each whether a serializer of the user's writes it."""
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    while waiting:
        part, is_serialized = waiting.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("type"), str):
                yield part, is_serialized
                is_serialized = is_serialized or has_own_serializer(part)
            waiting += [
                (each, is_serialized)
                for name, each in part.items()
                if name not in ("metadata", "serialization", "config", "function")
            ]
        elif isinstance(part, (list, tuple)):
            waiting += [(each, is_serialized) for each in part]


def check_told_apart(kind: Any) -> None:
    """Checks that pydantic finds the class of what a union has written, outside of classes: inside, each value is read.

    Of several classes it takes the one with the most fields that were found, and the first one of those.

    Raises:
        TypeError: What one class writes is read as another one, whatever the value is.
    """
    waiting = [kind]
    while waiting:
        kinds = members(waiting.pop())
        records = [each for each in kinds if has_fields(each)]
        for one, other in itertools.permutations(records, 2):
            if _looks_like(one, other):
                names = [getattr(each, "__qualname__", str(each)) for each in (one, other)]
                raise TypeError(
                    f"a {names[0]} may be read as a {names[1]}: give them a field of a Literal type as a tag"
                )
        waiting += [each for kind in kinds if not has_fields(kind) for each in typing.get_args(kind) if each is not ...]


def _looks_like(one: Any, other: Any) -> bool:
    """Tells whether what one class writes has all fields that another one needs, and none that it does not know."""
    written, read = ({each.name: each for each in fields_of(kind) if not each.is_computed} for kind in (one, other))
    needed = {name for name, each in read.items() if each.default is msgspec.NODEFAULT and each.default_factory is None}
    if not written.keys() <= read.keys() or not needed <= written.keys():
        return False
    return not any(_is_tag(each.hint) and _is_tag(read[name].hint) for name, each in written.items())


def _is_tag(hint: Any) -> bool:
    return typing.get_origin(plain_hint(hint)) is typing.Literal


def has_own_serializer(node: Mapping[str, Any]) -> bool:
    """Tells whether the user's code writes the values of a node."""
    serializer = (node.get("serialization") or {}).get("function")
    return not str(getattr(serializer, "__module__", "pydantic")).startswith("pydantic")


def models_in(kind: Any) -> list[Any]:
    """Returns the parts of a type that pydantic reads and writes, the outermost of each."""
    found: list[Any] = []
    seen: set[Any] = set()
    waiting = [kind]
    while waiting:
        for member in members(waiting.pop()):
            if member in seen or typing.get_origin(member) is typing.Literal:
                continue
            seen.add(member)
            if pydantic_models.mentions_model(member) and not typing.get_args(member):
                found.append(member)
            elif has_fields(member):
                waiting += [each.hint for each in fields_of(member)]
            else:
                waiting += [each for each in typing.get_args(member) if each is not ...]
    return found


def _is_sure(node: Mapping[str, Any]) -> bool:
    kind = node["type"]
    if kind not in SURE and kind != "computed-field":
        return False
    if "serialization" in node or any(node.get(name) for name in CHANGING):
        return False
    if kind == "union":
        choices = [each[0] if isinstance(each, tuple) else each for each in node["choices"]]
        return all(each["type"] in TOLD_APART and "serialization" not in each for each in choices)
    if kind == "enum" and node.get("sub_type") is None:
        return all(type(each.value) in (str, int) for each in node["members"])
    if kind in ("model-field", "dataclass-field", "typed-dict-field"):
        return not node.get("serialization_exclude_if") and node.get("init", True)
    if kind in ("model", "dataclass"):
        # A value of a derived class is written without the fields of that class.
        # One of a class that is not pydantic's was never checked.
        is_checked = pydantic_models.is_model(node["cls"]) and not node.get("custom_init")
        is_plain = is_checked and not node["cls"].__subclasses__()
        return is_plain and _settings(node).keys() <= SURE_SETTINGS and _extra(node) != "allow"
    return True


def _problems(node: Mapping[str, Any], is_serialized: bool) -> Iterator[str]:
    if is_serialized:
        return  # It depends on the serializer.
    if node["type"] == "is-instance" and hasattr(node["cls"], "get_secret_value"):
        yield f"a {node['cls'].__name__} is written as asterisks; give its field a serializer"
    if node["type"] in ("model", "dataclass", "typed-dict"):
        yield from _problems_of_names(node)


def _problems_of_names(node: Mapping[str, Any]) -> Iterator[str]:
    """Yields the fields of a class that are not read as what they were written as."""
    found = _naming(node)
    if found is None or "serialization" in node:
        return
    owner, settings = getattr(node.get("cls"), "__qualname__", "a typed dict"), _settings(node)
    fields = dict(_fields(found))
    computed = [each.get("alias", each["property_name"]) for each in found.get("computed_fields", ())]
    written = [_written(name, field) for name, field in fields.items() if not field.get("serialization_exclude")]
    for name, field in fields.items():
        if field.get("serialization_exclude") or field.get("init_only"):
            yield f"{owner}.{name} is not written, so it is read as its default, or missing"
        elif wrong := _misread(_written(name, field), list(_read(name, field, settings)), [*written, *computed]):
            yield f"{owner}.{name} is written as {_written(name, field)!r} and read as {wrong}"
    if computed and _extra(node) in ("forbid", "allow"):
        yield f"{owner}.{computed[0]} is computed: it is written, and {owner} takes it for an extra field when it reads"


def _misread(written: str, read: list[list[Any]], all_written: list[str]) -> str | None:
    """Returns the names by which a field is read, if they do not find what was written for it."""
    if all_written.count(written) == 1:
        for path in read:
            if path == [written]:
                return None
            if path[0] in all_written:
                break  # It finds another field.
    return " or ".join(repr(path[0] if len(path) == 1 else tuple(path)) for path in read)


def _written(name: str, field: Mapping[str, Any]) -> str:
    return str(field.get("serialization_alias") or name)


def _read(name: str, field: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yields the paths by which a field is read, in pydantic's order."""
    alias = field.get("validation_alias")
    if alias is not None and settings.get("validate_by_alias", True):
        paths = [alias] if isinstance(alias, str) else alias
        if paths and not isinstance(paths[0], (list, tuple)):
            paths = [paths] if not isinstance(alias, str) else [[alias]]
        yield from map(list, paths)
    if alias is None or settings.get("validate_by_name") or settings.get("populate_by_name"):
        yield [name]


def _naming(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the part of a class's node that names its fields, below the validators around it."""
    while node["type"] not in NAMING:
        below = node.get("schema")
        if not isinstance(below, Mapping):
            return None
        node = below
        if node["type"] == "model":
            return None  # The root of a root model.
    return node


def _fields(naming: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    fields = naming["fields"]
    return fields.items() if isinstance(fields, Mapping) else ((each["name"], each) for each in fields)


def _settings(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: each for name, each in (node.get("config") or {}).items() if each is not None}


def _extra(node: Mapping[str, Any]) -> str:
    naming = _naming(node) or {}
    return str(naming.get("extra_behavior") or _settings(node).get("extra_fields_behavior") or "ignore")
