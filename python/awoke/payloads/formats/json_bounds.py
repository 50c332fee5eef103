"""Bounds what a JSON Schema of a registry may cost: a message names its schema, and its values are the sender's.

`jsonschema` compares each item of an array with each other one for `uniqueItems`, and searches patterns with Python's
regular expressions, which need time without end for some. Here items are looked up, and patterns are searched in linear
time. A pattern that can't be (it looks around, or refers back) is searched in short texts only, and is refused if one
of its repetitions repeats another.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from awoke._native import LinearPattern
from awoke.preconditions.extras import needs

TEXT_MAX = 100_000
"""The longest text that a pattern is searched in."""
SHORT_MAX = 200
"""The longest text for a pattern that may need more than linear time."""
PATTERN_MAX = 2_000
REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
Check = Callable[..., Iterator[Any]]


class TooCostly(ValueError):
    """A value, or a pattern, that would take too long."""


@functools.lru_cache(maxsize=64)
def bounded(validator: Any) -> Any:
    """Returns a class of jsonschema's validators with these bounds. They hold for parts of other drafts, too."""
    jsonschema = needs("jsonschema", "registry")
    error = jsonschema.exceptions.ValidationError
    known = validator.VALIDATORS

    def unique_items(checked: Any, is_unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if is_unique and isinstance(instance, list) and not are_unique(instance):
            yield error("the array has items twice")

    def pattern(checked: Any, wanted: str, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not search(wanted, instance):
            yield error("the text does not match the pattern")

    def pattern_properties(checked: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(instance, dict):
            return
        for wanted, inner in patterns.items():
            for name, value in instance.items():
                if search(wanted, name):
                    yield from checked.descend(value, inner, path=name, schema_path=wanted)

    def additional_properties(checked: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(instance, dict):
            return
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extra = [each for each in instance if each not in named and not any(search(it, each) for it in patterns)]
        if isinstance(inner, dict):
            for each in extra:
                yield from checked.descend(instance[each], inner, path=each)
        elif not inner and extra:
            yield error("there are more properties than the schema has")

    def unevaluated_properties(checked: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
        # jsonschema searches the patterns by itself here; `check_patterns` has looked at them.
        if isinstance(instance, dict) and any(len(name) > SHORT_MAX for name in instance):
            raise TooCostly(f"the name of a property has more than {SHORT_MAX} characters, for patterns of its schema")
        yield from known["unevaluatedProperties"](checked, inner, instance, schema)

    own: dict[str, Check] = {
        "unevaluatedProperties": unevaluated_properties,
        "uniqueItems": unique_items,
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
    }
    made = jsonschema.validators.extend(validator, {name: each for name, each in own.items() if name in known})
    evolve_unbounded = made.evolve

    def evolve(self: Any, **changes: Any) -> Any:
        # jsonschema looks up a class of its own for each part that has a `$schema`, also for the whole schema again.
        found = evolve_unbounded(self, **changes)
        return found if type(found) is made else _bounded_copy(found)

    made.evolve = evolve
    return made


def _bounded_copy(validator: Any) -> Any:
    kind: Any = type(validator)
    fields = needs("attrs", "registry").fields(kind)
    return bounded(kind)(**{field.alias: getattr(validator, field.name) for field in fields if field.init})


def check_patterns(documents: Iterable[Any]) -> None:
    """Refuses patterns for names of properties that may need time without end, where jsonschema searches them itself.

    Raises:
        TooCostly: There is one, beside `unevaluatedProperties`.
    """
    patterns, is_searched, ahead = set[str](), False, list(documents)
    for document in ahead:  # It grows.
        if isinstance(document, dict):
            found = document.get("patternProperties")
            patterns |= set(found) if isinstance(found, dict) else set()
            is_searched = is_searched or "unevaluatedProperties" in document
            ahead += document.values()
        elif isinstance(document, list):
            ahead += document
    for pattern in patterns if is_searched else ():
        try:
            is_costly = _repeats_repeats(_parser.parse(pattern), is_repeated=False)
        except (re.error, RecursionError, OverflowError):
            is_costly = True
        if is_costly:
            raise TooCostly("a pattern of the schema may need time without end")


def are_unique(items: list[Any]) -> bool:
    """Tells whether no two items are the same JSON."""
    found = {canonical(each) for each in items}
    return len(found) == len(items)


def canonical(value: Any) -> Any:
    """Returns something hashable that is equal for the same JSON: 1 is 1.0, and not true."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, list):
        return "array", tuple(map(canonical, value))
    if isinstance(value, dict):
        return "object", frozenset((name, canonical(each)) for name, each in value.items())
    return value


def search(pattern: str, text: str) -> bool:
    """Tells whether a pattern is found in a text.

    Raises:
        TooCostly: The text is too long for it, or the pattern may need time without end.
    """
    found, longest = _compiled(pattern)
    if len(text) > longest:
        raise TooCostly(f"a text of {len(text)} characters is too long for the pattern of its schema")
    return bool(found(text))


@functools.lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> tuple[Callable[[str], object], int]:
    """Returns the search of a pattern, and the longest text for it."""
    if len(pattern) > PATTERN_MAX:
        raise TooCostly(f"a pattern of the schema has {len(pattern)} characters, and {PATTERN_MAX} at most are used")
    try:
        return LinearPattern(pattern).search, TEXT_MAX
    except ValueError:
        pass
    try:
        if _repeats_repeats(_parser.parse(pattern), is_repeated=False):
            raise TooCostly("a pattern of the schema may need time without end")
        return re.compile(pattern).search, SHORT_MAX
    except (re.error, RecursionError, OverflowError) as error:
        raise TooCostly(f"a pattern of the schema can't be used: {type(error).__name__}") from None


def _repeats_repeats(parsed: Any, *, is_repeated: bool) -> bool:
    """Tells whether a repetition has another one in it, or more than three stand in a row."""
    count = 0
    for kind, argument in parsed:
        is_repeat = str(kind) in REPEATS and argument[1] > 1
        if is_repeat and is_repeated:
            return True
        count += is_repeat
        for inner in _inner(argument):
            if _repeats_repeats(inner, is_repeated=is_repeated or is_repeat):
                return True
    return count > 3


def _inner(argument: Any) -> Iterator[Any]:
    """Gives the parts of a pattern that are patterns themselves."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for each in argument:
            yield from _inner(each)
