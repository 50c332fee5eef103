"""Arguments and results that are not JSON: one value, written by a format, or by its class of protobuf's.

A *form* is an `awoke.Format` or such a class. All other types are JSON: calls use no default format of an app, so that
callers and responders of several apps agree.

The body of such a value is its bytes, with the headers that say how to read them. A body without headers is the bytes
themselves. Else it begins with `MAGIC`. Then come the number of headers in two bytes; of each header its name and its
value, each with its length in four bytes before it; and the bytes. `MAGIC` alone is None. Numbers are big-endian.
"""

from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from awoke.errors import AwokeError, ConfigError, EncodeError
from awoke.payloads.formats import protobuf_classes
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import (
    Encode,
    Format,
    Payload,
    encoder_of,
    format_of,
    reader_of,
    takes_none,
    type_of,
)
from awoke.payloads.registry.errors import RegistryError, SchemaNotFound
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.rpc.protocol import ServiceTopics

STREAMS = (
    *(collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator),
    *(collections.abc.AsyncIterator, collections.abc.AsyncIterable, collections.abc.AsyncGenerator),
)

MAGIC = b"\xffrpc"

Write = Callable[[Any], bytes]
Read = Callable[[bytes], Any]
Opened = tuple[bytes | None, list[tuple[str, bytes | None]]]


def is_form(form: Any) -> bool:
    """Tells whether this is a format, or a class of protobuf's."""
    return isinstance(form, Format) or protobuf_classes.class_in(form) is not None


def form_in(hint: Any) -> Any:
    """Returns the form that an annotation names; None for JSON.

    `Annotated[Order, awoke.avro(Order)]` names a format, and `OrderPb` is one by itself.
    """
    if typing.get_origin(hint) is typing.Annotated:
        found = [each for each in hint.__metadata__ if isinstance(each, Format)]
        return found[0] if found else form_in(typing.get_args(hint)[0])
    return hint if protobuf_classes.class_in(hint) is not None else None


def only_form(hints: Mapping[str, Any]) -> Any:
    """Returns the form that the annotation of the only parameter names; None for JSON.

    Raises:
        TypeError: There are more parameters beside it.
    """
    found = {name: form for name, hint in hints.items() if (form := form_in(hint)) is not None}
    if found and len(hints) > 1:
        text = f"parameter {next(iter(found))!r} is in a format ({name_of(next(iter(found.values())))})"
        raise TypeError(f"{text}: it must be the only parameter")
    return next(iter(found.values()), None)


def checked(form: Any, option: str) -> Any:
    """Returns the form that an option names; None stays None.

    Raises:
        ConfigError: It is no form.
    """
    if form is None or is_form(form):
        return form
    text = (
        f"{option}={form!r} is no format: say awoke.avro(Order) or the like, or a class of protobuf's; others are JSON"
    )
    raise ConfigError(text, option)


def plain(hint: Any) -> Any:
    """Returns an annotation without the formats that it names, as people read it."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return parts[0] if any(isinstance(each, Format) for each in hint.__metadata__) else hint
    if origin in STREAMS and parts[0] is not plain(parts[0]):
        return origin[(plain(parts[0]), *parts[1:])]
    return hint


def name_of(form: Any) -> str | None:
    """Returns the name of a form, as `Avro`; None for None, which is JSON."""
    if form is None:
        return None
    return type(form).__name__.removesuffix("Format") if isinstance(form, Format) else "Protobuf"


def argument_topic(service: str, method: str) -> str:
    """Returns the topic that stands for a method's argument: its schema is `shop.rpc.calls.price-value`."""
    return f"{ServiceTopics.of(service).calls}.{method}"


def result_topic(service: str, method: str) -> str:
    """Returns the topic that stands for a method's results: their schema is `shop.rpc.replies.price-value`."""
    return f"{ServiceTopics.of(service).replies}.{method}"


def writer(form: Any, topic: str, schemas: Schemas) -> Write:
    """Returns the function that writes a value as a body.

    The function raises EncodeError for a value that does not fit, and SchemaNeeded.

    Raises:
        ConfigError: The form can't be here.
    """
    encode: Encode | None
    if isinstance(form, Format):
        encode = encoder_of(form, topic, "value", BY_TYPE, schemas)
    else:  # A class of protobuf's.
        encode = BY_TYPE.of(form).encoder(topic, "value", schemas)
    assert encode is not None
    value_type = type_of(form)
    is_optional = value_type is None or takes_none(value_type)

    def write(value: Any) -> bytes:
        if value is not None:
            return closed(encode(value))
        if is_optional:
            return closed(None)
        raise EncodeError(f"None is no {name_of(form)} here; say a type that takes it: T | None")

    return write


def reader(form: Any, topic: str, schemas: Schemas) -> Read:
    """Returns the function that reads a value from a body.

    The function raises `msgspec.ValidationError` for a body that can't be read, with the reason; SchemaNeeded; and
    RegistryError, if the registry can't be asked.

    Raises:
        ConfigError: The form can't be here.
    """
    decode = reader_of(format_of(form, BY_TYPE), topic, "value", schemas)

    def read(body: bytes) -> Any:
        try:
            return decode(*opened(body))
        except Exception as error:
            if isinstance(error, SchemaNeeded | ConfigError) or is_away(error):
                raise
            why = str(error) if isinstance(error, ValueError | TypeError | AwokeError | msgspec.MsgspecError) else ""
            found = msgspec.ValidationError(f"it can't be read as {name_of(form)}: {why or type(error).__name__}")
        raise found

    return read


def is_away(error: BaseException) -> bool:
    """Tells whether the registry can't be asked: any of its errors but that it does not have a schema."""
    return isinstance(error, RegistryError) and not isinstance(error, SchemaNotFound)


def closed(payload: Payload | None) -> bytes:
    """Returns a value, or None, as a body."""
    if payload is None:
        return MAGIC
    data, headers = payload
    if not headers and not data.startswith(MAGIC):
        return data
    parts = [MAGIC, len(headers).to_bytes(2)]
    for text, value in headers:
        name = text.encode()
        parts += [len(name).to_bytes(4), name, len(value).to_bytes(4), value]
    return b"".join((*parts, data))


def opened(body: bytes) -> Opened:
    """Returns the bytes of a value, or None, and the headers.

    Raises:
        ValueError: The body ends within its headers.
    """
    if not body.startswith(MAGIC):
        return body, []
    if len(body) == len(MAGIC):
        return None, []
    at = len(MAGIC) + 2
    _check(body, at)
    count = int.from_bytes(body[at - 2 : at])
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _part(body, at)
        value, at = _part(body, at)
        headers.append((name.decode(), value))
    return body[at:], headers


def _part(body: bytes, at: int) -> tuple[bytes, int]:
    _check(body, at + 4)
    end = at + 4 + int.from_bytes(body[at : at + 4])
    _check(body, end)
    return body[at + 4 : end], end


def _check(body: bytes, end: int) -> None:
    if end > len(body):
        raise ValueError("the body ends within its headers")
