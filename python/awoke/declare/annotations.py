"""Reads from a handler's annotation, `Message[Order]` or `Batch[Order]`, which values it takes."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from awoke._native import Batch, Message
from awoke.declare.signatures import signature_of
from awoke.errors import ConfigError

CONTAINERS: dict[str, Any] = {"Message": Message, "Batch": Batch}
OF_AWOKE = re.compile(r"\b(Message|Batch)\b|\bawoke\.\w|\b(Header|Service|Depends)\(|\b(Value|Key)\[")
"""Annotations that a route uses."""


def types_of(function: Callable[..., Any], around: FrameType | None) -> tuple[Any, Any]:
    """Returns the types of values and keys that the handler's first parameter says; None where it says none.

    Those are `Order` and `int` of `Message[Order, int]` and of `Batch[Order, int]`; of `Message[Order]` only the first.
    `Message`, `Message[Any]` and a type variable say none. `around` is the frame in which the handler was defined.

    Raises:
        ConfigError: The annotation is a text with a name that can't be resolved.
    """
    annotation = hint_of(_first_annotation(function), function, around)
    found = [each for each in members_of(annotation) if typing.get_origin(each) in CONTAINERS.values()]
    if not found:
        return None, None
    value_type, key_type = (*typing.get_args(found[0]), None)[:2]
    return said(hint_of(value_type, function, around)), said(hint_of(key_type, function, around))


def said(kind: Any) -> Any:
    """Returns a type of values; None for one that says nothing: `Any`, `object`, a type variable."""
    return None if kind in (Any, object) or isinstance(kind, typing.TypeVar) else kind


def hint_of(annotation: Any, function: Callable[..., Any], around: FrameType | None) -> Any:
    """Returns the annotation of a parameter of a function; a text is resolved, None if it can't be.

    Raises:
        ConfigError: It can't be resolved, and names something of awoke's.
    """
    return _resolved(annotation, function, around) if isinstance(annotation, str) else annotation


def result_type_of(function: Callable[..., Any], around: FrameType | None) -> Any:
    """Returns the type of the results by the handler's annotation; None without one, or if it can't be resolved."""
    if hasattr(function, "__wrapped__"):
        return None  # The decorator may make something else of the result.
    try:
        annotation = hint_of(signature_of(function).return_annotation, function, around)
    except (TypeError, ValueError, NameError, ConfigError):
        return None
    return None if annotation in (inspect.Signature.empty, Any) else annotation


def type_name(kind: Any) -> str:
    """Returns a type as its user spells it, without modules where it is a class."""
    return kind.__qualname__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)


def contradicts(value: Any, annotated: Any) -> bool:
    """Returns whether some values of the type `value` are certainly none of the type `annotated`."""
    return not all(any(_may_be(each, other) for other in members_of(annotated)) for each in members_of(value))


def _first_annotation(function: Callable[..., Any]) -> Any:
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError, NameError):
        return None
    for parameter in parameters:
        is_positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if is_positional and parameter.annotation is not parameter.empty:
            return parameter.annotation  # `self` of a method has none.
    return None


def _resolved(annotation: str, function: Callable[..., Any], around: FrameType | None) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    global_names = _globals_of(function)
    # A file may import awoke for type checkers only.
    more: dict[str, Any] = {name: found for name, found in CONTAINERS.items() if name not in global_names}
    if "awoke" not in global_names:
        more["awoke"] = types.SimpleNamespace(**CONTAINERS)
    try:
        return typing.get_type_hints(
            holder, global_names, {**more, **_names_in(around, annotation)}, include_extras=True
        )["it"]
    except Exception as error:
        if OF_AWOKE.search(annotation) is None:
            return None  # It may be anything; what a route can use names one of them.
        text = f"the annotation {annotation!r} can't be resolved ({error}); import its names at run time, or say value="
        raise ConfigError(text, "value") from None


def _names_in(frame: FrameType | None, annotation: str) -> Mapping[str, Any]:
    """Returns the names of a frame, if the annotation uses one of a function's: to read those copies and keeps all."""
    if frame is None:
        return {}
    code = frame.f_code
    known = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    if code.co_flags & inspect.CO_OPTIMIZED and known.isdisjoint(re.findall(r"\w+", annotation)):
        return {}
    return frame.f_locals


def _globals_of(function: Any) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        function = function.__init__  # type: ignore[misc]
    elif not inspect.isroutine(function):
        function = inspect.getattr_static(type(function), "__call__", function)
    function = inspect.unwrap(function)
    found: dict[str, Any] = getattr(getattr(function, "__func__", function), "__globals__", {})
    return found


def members_of(kind: Any) -> Iterator[Any]:
    """Yields the types of a union; a type that is none as the only one."""
    kind = getattr(kind, "__value__", kind)
    origin = typing.get_origin(kind)
    if origin is typing.Annotated or isinstance(kind, typing.NewType):
        yield from members_of(typing.get_args(kind)[0] if origin is typing.Annotated else kind.__supertype__)
    elif origin in (typing.Union, types.UnionType):
        for each in typing.get_args(kind):
            yield from members_of(each)
    elif origin is typing.Literal:
        yield from {type(each) for each in typing.get_args(kind)}
    else:
        yield type(None) if kind is None else kind


def _may_be(value: Any, annotated: Any) -> bool:
    """Returns whether a value of one type may be of another, neither of them a union."""
    if value == annotated or Any in (value, annotated) or isinstance(annotated, typing.TypeVar):
        return True
    kinds = [typing.get_origin(each) or each for each in (value, annotated)]
    if not all(isinstance(kind, type) for kind in kinds):
        return True
    try:
        is_sub = issubclass(kinds[0], kinds[1]) or (kinds[0] is int and kinds[1] is float)
    except TypeError:
        return True  # A protocol or a typed dict says nothing about classes.
    pairs = list(zip(typing.get_args(value), typing.get_args(annotated), strict=False))
    return is_sub and (kinds[0] is not kinds[1] or not any(contradicts(*pair) for pair in pairs))
