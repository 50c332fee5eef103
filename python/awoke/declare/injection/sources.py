"""Finds where an argument comes from, by the annotation of its parameter."""

from __future__ import annotations

import logging
import re
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import msgspec.inspect

from awoke._native import Batch, Message
from awoke.declare.annotations import members_of
from awoke.declare.consumer import Application
from awoke.declare.injection.markers import Depends, DependsMark, Header, HeaderMark, IsKey, IsValue, Scope, Service
from awoke.errors import DecodeError
from awoke.observe.events import Events
from awoke.produce.producer import Producer
from awoke.settings import Settings

MISSING: Any = object()
"""The default of a parameter that has none."""
RECEIVED = re.compile(r"(?:\w+\.)?(Message|Batch)\[")
"""The text of an annotation of the message, or of the batch."""


class Assignment(NamedTuple):
    """The partition that a handler works for: a parameter of this type gets it, also in functions of `Depends`."""

    topic: str
    partition: int


class PerCall(NamedTuple):
    """An argument that is looked up in what the handler is called with."""

    get: Callable[[Any], Any]
    is_received: bool = False
    """True if it is the message, or the batch, itself."""
    value_type: Any = None
    """The type that it says for the values of the route."""
    key_type: Any = None
    """The type that it says for the keys of the route."""
    is_of_message: bool = True
    """True if only a message has it, and no batch."""
    scope: Scope = "job"


class PerAssignment(NamedTuple):
    """The topic and the partition."""

    scope: Scope = "assignment"


class OfApp(NamedTuple):
    """An argument that the app has."""

    get: Callable[[Application], Any]
    scope: Scope = "process"


class OfFunction(NamedTuple):
    """An argument that a function of `Depends` returns."""

    depends: DependsMark

    @property
    def scope(self) -> Scope:
        """The life of the argument."""
        return self.depends.scope


Source = PerCall | PerAssignment | OfApp | OfFunction

MARKS = (IsValue, IsKey, HeaderMark, Service, DependsMark)

FOREIGN = frozenset({"fastapi", "faststream", "fast_depends", "taskiq", "taskiq_dependencies"})
"""Libraries whose marks look like awoke's, and mean nothing to it."""

GIVEN: dict[type, Callable[[Application], Any]] = {
    Producer: lambda app: app.producer,
    Settings: lambda app: app.settings,
    Events: lambda app: app.events,
}
"""Returns what the app gives to a parameter of a type. `awoke.App` adds itself."""


def source_of(annotation: Any, default: Any, logger: str) -> Source | None:
    """Returns where the argument of a parameter comes from; None if its annotation does not say it.

    `default` is that of the parameter, `logger` the name of the logger that it may get.

    Raises:
        TypeError: A header can't be read as the type of the parameter; a mark has no argument, or is another library's.
    """
    if (found := marked_by_default(annotation, default)) is not None:
        return found
    kind, *marks = typing.get_args(annotation) if typing.get_origin(annotation) is typing.Annotated else [annotation]
    for mark in marks:
        check_own(mark)
        found = _marked(mark, kind, default)
        if found is not None:
            return found
    if kind is Assignment:
        return PerAssignment()
    if kind is logging.Logger:
        return OfApp(lambda app: app.logger(logger))
    if isinstance(kind, type) and kind in GIVEN:
        return OfApp(GIVEN[kind], "app" if kind is Settings else "process")
    return _received(kind)


def marked_by_default(annotation: Any, default: Any) -> Source | None:
    """Returns where an argument comes from by the mark that is its parameter's default, as FastAPI has it; else None.

    Raises:
        TypeError: The mark is another library's, or as `source_of`.
    """
    check_own(default)
    is_mark = isinstance(default, MARKS) or any(default is each for each in (Header, Service, Depends))
    return _marked(default, annotation, MISSING) if is_mark else None


def check_own(mark: object) -> None:
    """Refuses the mark of another library, which would be passed as it is.

    Raises:
        TypeError: It is one.
    """
    library = type(mark).__module__.partition(".")[0]
    if library in FOREIGN:
        name = type(mark).__name__
        instead = f"awoke.{name}" if name in ("Depends", "Header") else "awoke.Value, awoke.Header or awoke.Depends"
        raise TypeError(f"has the mark {name} of {library}, which awoke does not know; use {instead}")


def is_value_type(kind: Any) -> bool:
    """Tells whether an annotation, without marks, is the type of a value: neither a message nor what may be one."""
    if kind is None or kind in (Any, object) or isinstance(kind, typing.TypeVar | str):
        return False
    origins = [typing.get_origin(each) or each for each in members_of(kind) if each is not type(None)]
    return bool(origins) and not any(map(_may_be_message, origins))


def _may_be_message(origin: Any) -> bool:
    if not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return True
    try:
        return issubclass(Message, origin)
    except TypeError:
        return False  # A typed dict.


def value_of(kind: Any) -> PerCall:
    """Returns the source of a parameter that gets the value of the message, of this type."""
    return PerCall(_value, value_type=kind)


def received_by(annotation: str) -> PerCall | None:
    """Returns the message or the batch, for a text that names it and a type that does not exist at run time."""
    found = RECEIVED.match(annotation)
    return None if found is None else PerCall(itself, True, is_of_message=found[1] == "Message")


def is_marked(annotation: Any) -> bool:
    """Tells whether an annotation has a mark for a handler's parameter."""
    marks = typing.get_args(annotation)[1:] if typing.get_origin(annotation) is typing.Annotated else ()
    return any(isinstance(mark, MARKS) or mark in (*MARKS, Depends, Header) for mark in marks)


def _received(kind: Any) -> Source | None:
    origin = typing.get_origin(kind) or kind
    if origin is not Message and origin is not Batch:
        return None
    value_type, key_type = (*typing.get_args(kind), None, None)[:2]
    return PerCall(itself, True, value_type, key_type, is_of_message=origin is Message)


def _marked(mark: Any, kind: Any, default: Any) -> Source | None:
    # A mark without its parentheses is a class.
    if isinstance(mark, IsValue) or mark is IsValue:
        return PerCall(_value, value_type=kind)
    if isinstance(mark, IsKey) or mark is IsKey:
        return PerCall(_key, key_type=kind)
    if isinstance(mark, HeaderMark):
        return PerCall(header_reader(mark.name, kind, default))
    if isinstance(mark, Service):
        return OfApp(lambda app: app.caller(mark.name))
    if mark in (Header, Service, Depends):
        raise TypeError(f"the mark {mark.__name__} needs parentheses and an argument: see awoke.{mark.__name__}")
    return OfFunction(mark) if isinstance(mark, DependsMark) else None


def is_taken(value: Any, kind: Any) -> bool:
    """Tells whether a value is one of a type."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def itself(received: Any) -> Any:
    """Returns the message or batch that a handler is called with."""
    return received


def _value(message: Any) -> Any:
    return message.value


def _key(message: Any) -> Any:
    return message.key


def header_reader(name: str, kind: Any, default: Any) -> Callable[[Any], Any]:
    """Returns the function that reads a header of a message as a type.

    Raises:
        TypeError: Text can't be read as the type.
    """
    is_raw, is_text = kind in (bytes, bytes | None), kind in (str, str | None)
    known = msgspec.inspect.type_info(kind)
    kinds = known.types if isinstance(known, msgspec.inspect.UnionType) else (known,)
    if any(isinstance(each, msgspec.inspect.CustomType) for each in kinds):
        raise TypeError(f"header {name!r} can't be read as {getattr(kind, '__qualname__', kind)}")
    takes_none = is_taken(None, kind)

    def read(message: Any) -> Any:
        found = None
        for each, value in message.headers:
            if each == name:
                found = value
        if found is None:
            if default is MISSING and not takes_none:
                raise failed(message, "is missing")
            return None if default is MISSING else default
        if is_raw:
            return found
        try:
            return found.decode() if is_text else msgspec.convert(found.decode(), kind, strict=False)
        except (UnicodeDecodeError, msgspec.ValidationError):
            raise failed(message, f"can't be read as {getattr(kind, '__qualname__', kind)}") from None

    def failed(message: Any, what: str) -> DecodeError:
        place = (message.topic, message.partition, message.offset)
        return DecodeError(f"{place[0]}[{place[1]}]@{place[2]}: header {name!r} {what}", *place)

    return read
