"""Reads and writes pydantic models with pydantic's own validation and JSON. Imports pydantic only when it sees one."""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Callable
from typing import Any

import msgspec

METADATA = ("pydantic", "annotated_types")
"""The modules of what pydantic reads beside a type in `Annotated`."""


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
    import pydantic

    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
    except (pydantic.PydanticUserError, NameError) as error:
        raise TypeError(re.split(r"\.?\s*\n|\. ", str(error))[0]) from None
    if not getattr(adapter, "pydantic_complete", True):
        raise TypeError("it names types that are not defined; define them first, or call its model_rebuild()")
    validate = adapter.validator.validate_json

    def decode(value: bytes) -> Any:
        try:
            return validate(value)
        except pydantic.ValidationError as error:
            raise msgspec.ValidationError(_words_of(error, at)) from None

    return decode


def takes_none(kind: Any) -> bool:
    """Returns whether None is a value of this type."""
    import pydantic

    try:
        return pydantic.TypeAdapter(kind).validate_python(None) is None
    except pydantic.ValidationError:
        return False


def to_json(value: Any) -> bytes:
    """Returns a model as JSON, under the names (aliases) that its fields have there.

    Raises:
        ValueError: pydantic can't write a part of it.
    """
    written: bytes = type(value).__pydantic_serializer__.to_json(value, by_alias=True)
    return written


def _words_of(error: Any, at: str) -> str:
    """Returns what is wrong and where, without the value itself: errors are logged, and values must not be."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{each['msg']} - at `{'.'.join([at, *map(str, each['loc'])])}`" for each in problems)
