"""Reads and writes pydantic models with pydantic's own validation and JSON. Imports pydantic only when it sees one."""

from __future__ import annotations

import functools
import re
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

METADATA = ("pydantic", "annotated_types")
"""The modules of what pydantic reads beside a type in `Annotated`."""

OWN_WORDS = {
    "union_tag_invalid": "The tag is none of those that are expected",
    "uuid_parsing": "Input should be a valid UUID",
    "bytes_invalid_encoding": "Data should be validly encoded",
}
"""Messages instead of those of pydantic's that have a part of the value."""
UNKNOWN_FIELD = ("extra_forbidden", "unexpected_keyword_argument")


def is_model(kind: object) -> bool:
    """Returns whether this is a class of pydantic's: a model or a dataclass that it validates."""
    return (
        sys.modules.get("pydantic") is not None and isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")
    )


def mentions_model(kind: Any) -> bool:
    """Returns whether pydantic must read values of this type: `Order`, `list[Order]`, `Order | None`, `PositiveInt`."""
    if sys.modules.get("pydantic") is None:
        return False
    kind = getattr(kind, "__value__", kind)
    if typing.get_origin(kind) is typing.Annotated:
        modules = {type(each).__module__.partition(".")[0] for each in kind.__metadata__}
        if not modules.isdisjoint(METADATA):
            return True
    return is_model(kind) or is_model(typing.get_origin(kind)) or any(map(mentions_model, typing.get_args(kind)))


def decoder_for(kind: Any, at: str = "$") -> Callable[[bytes], Any]:
    """Returns a function that reads JSON as a type of pydantic's; `at` is where the JSON is, for errors.

    The function raises `msgspec.ValidationError`, whose text has no part of the value.

    Raises:
        TypeError: pydantic can't read this type.
    """
    adapter = _adapter(kind)
    return _checked(adapter.validator.validate_json, at, adapter)


def converter_for(kind: Any) -> Callable[[Any], Any]:
    """Returns a function that makes a type of pydantic's of dicts, lists and plain values, with errors as above.

    Raises:
        TypeError: pydantic can't read this type.
    """
    adapter = _adapter(kind)
    return _checked(adapter.validator.validate_python, "$", adapter)


def json_schema_of(kind: Any, is_read: bool = False) -> dict[str, Any]:
    """Returns the JSON Schema of what a type of pydantic's writes, or of what it reads."""
    return dict(_adapter(kind).json_schema(by_alias=True, mode="validation" if is_read else "serialization"))


class ModelField(NamedTuple):
    """One field of a model."""

    attribute: str
    written: str
    """Its name in what is written."""
    hint: Any
    default: Any
    """`msgspec.NODEFAULT` if it has none, or makes it for each model."""
    is_computed: bool


def fields_of(kind: Any) -> list[ModelField]:
    """Returns the fields of a model, those that it computes last."""
    is_class = hasattr(kind, "model_fields")
    fields = kind.model_fields if is_class else kind.__pydantic_fields__
    found = []
    for name, field in fields.items():
        hint = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        default = msgspec.NODEFAULT if field.is_required() or field.default_factory else field.default
        found.append(ModelField(name, field.serialization_alias or field.alias or name, hint, default, False))
    computed = kind.__pydantic_decorators__.computed_fields
    return [
        *found,
        *(
            ModelField(name, each.info.alias or name, each.info.return_type, msgspec.NODEFAULT, True)
            for name, each in computed.items()
        ),
    ]


def is_root_model(kind: Any) -> bool:
    """Tells whether this is a model that is written as its only part."""
    return getattr(kind, "__pydantic_root_model__", False) is True


def core_schema_of(kind: Any) -> Any:
    """Returns the schema by which pydantic reads and writes a type.

    Raises:
        TypeError: pydantic can't read this type.
    """
    return _adapter(kind).core_schema


def to_builtins(value: Any) -> Any:
    """Returns a model as dicts, lists and plain values, under the names (aliases) of JSON."""
    return type(value).__pydantic_serializer__.to_python(value, by_alias=True)


def takes_none(kind: Any) -> bool:
    """Returns whether None is a value of this type."""
    import pydantic

    try:
        return pydantic.TypeAdapter(kind).validate_python(None) is None
    except (pydantic.ValidationError, pydantic.PydanticUserError):
        return False


def to_json(value: Any) -> bytes:
    """Returns a model as JSON, under the names (aliases) that its fields have there.

    Raises:
        ValueError: pydantic can't write a part of it.
    """
    written: bytes = type(value).__pydantic_serializer__.to_json(value, by_alias=True)
    return written


def _words_of(error: Any, at: str, known: frozenset[str]) -> str:
    """Returns what is wrong and where, without the value itself: errors are logged, and values must not be."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{_message_of(each)} - at `{'.'.join([at, *_place_of(each, known)])}`" for each in problems)


def _message_of(problem: Any) -> str:
    """Returns pydantic's message; some have a part of the value. That of a validator of the user's is the user's."""
    return OWN_WORDS.get(problem["type"]) or str(problem["msg"])


def _place_of(problem: Any, known: frozenset[str]) -> Iterator[str]:
    """Yields the parts of the place of a problem; a key of the value's own is `[...]`, as msgspec shows it."""
    *_, last = problem["loc"] or ("",)
    for part in problem["loc"]:
        is_unknown_field = problem["type"] in UNKNOWN_FIELD and part is last and str(part).isidentifier()
        yield str(part) if isinstance(part, int) or part in known or is_unknown_field else "[...]"


def _names_in(schema: Any) -> frozenset[str]:
    """Returns the texts in a core schema of pydantic's: the names of fields, aliases, and kinds of types."""
    found: set[str] = set()
    waiting, seen = [schema], set[int]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            found.add(part)
        elif isinstance(part, dict | list | tuple) and id(part) not in seen:
            seen.add(id(part))
            waiting += [*part, *part.values()] if isinstance(part, dict) else part
    return frozenset(found)


def _adapter(kind: Any) -> Any:
    """Returns pydantic's adapter of a type.

    Raises:
        TypeError: pydantic can't read this type.
    """
    import pydantic

    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
    except (pydantic.PydanticUserError, NameError) as error:
        raise TypeError(re.split(r"\.?\s*\n|\. ", str(error))[0]) from None
    if not getattr(adapter, "pydantic_complete", True):
        raise TypeError("it names types that are not defined; define them first, or call its model_rebuild()")
    return adapter


def _checked(validate: Callable[[Any], Any], at: str, adapter: Any) -> Callable[[Any], Any]:
    from pydantic import ValidationError

    names = functools.cache(lambda: _names_in(adapter.core_schema))

    def read(value: Any) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            found = msgspec.ValidationError(_words_of(error, at, names()))
        raise found  # Outside of the block: the error that has the value is not kept.

    return read
