"""Decodes keys and values of messages by the schemas that they name, and says why where it can't."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from awoke.errors import AwokeError, ConfigError, DecodeError
from awoke.payloads.decoding.protobuf_messages import protobuf_reader
from awoke.payloads.formats import avro, json_schema
from awoke.payloads.formats.format import Decode, Encode, Format, Headers
from awoke.payloads.registry import wire_format
from awoke.payloads.registry.errors import RegistryError, SchemaNotFound
from awoke.payloads.registry.schema import Part, RegisteredSchema
from awoke.payloads.registry.schemas import Schemas, loading
from awoke.payloads.registry.wire_format import Framed
from awoke.payloads.topics import Topic
from awoke.text.printable import harmless_json

if TYPE_CHECKING:
    from awoke.payloads.registry.client import SchemaRegistry

Read = Callable[[Framed], Any]
"""Returns the value of a payload."""


class Decoded(NamedTuple):
    """A key or a value that was decoded."""

    json: str
    """On one line, without control characters."""
    schema: int | str | None
    """The id or the GUID of the schema that the message names; None of what the type of a route has decoded."""


class ShownPart(NamedTuple):
    """A key or a value, as it is printed."""

    name: Part
    raw: bytes | None
    decoded: Decoded | None = None
    note: str | None = None
    """The reason why it is not decoded; None also for a key that names no schema, which is usual."""


class RegisteredFormat(Format):
    """Reads every kind of schema that a registry has, without a type. Its values are `Decoded`."""

    reads_headers = True
    # It needs no registry of the settings: it has its own schemas.

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that decodes a message by the schema that it names. The function blocks."""
        readers: dict[int | str, Read] = {}
        header = wire_format.HEADERS[part]

        def decode(data: bytes, headers: Headers) -> Decoded:
            framed = wire_format.split(data, headers, header)
            if framed.schema not in readers:
                readers[framed.schema] = self._reader(self._schemas.by_id(framed.schema))
            value = msgspec.json.encode(readers[framed.schema](framed)).decode()
            return Decoded(harmless_json(value), framed.schema)

        return loading(decode)

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Raises TypeError: nothing is written."""
        raise TypeError("this format only reads")

    def _reader(self, registered: RegisteredSchema) -> Read:
        if registered.schema.kind == "PROTOBUF":
            return protobuf_reader(registered, self._schemas)
        form = json_schema() if registered.schema.kind == "JSON" else avro()
        read = form.reader(registered, self._schemas)
        return lambda framed: read(framed.payload)


class RegisteredTopics:
    """Topics that are decoded by the schemas of a registry. A context manager: leaving it closes its client."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._schemas = Schemas(lambda: registry)

    def topic(self, name: str) -> Topic:
        """Returns the topic for a reader, so that the messages are decoded when their parts are asked for."""
        registered = RegisteredFormat(self._schemas)
        return Topic(name, value=registered, key=registered)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._schemas.close()


def part_of(message: Any, name: Part) -> ShownPart:
    """Returns the key or the value of a message of `RegisteredTopics.topic`. Blocks for a schema that is not there yet.

    Raises:
        RegistryError: The registry does not answer, or does not let the command in. ConfigError: A library is missing.
    """
    raw = message.raw_key if name == "key" else message.raw_value
    if raw is None or (name == "key" and not names_schema(raw, message.headers)):
        return ShownPart(name, raw)
    try:
        return ShownPart(name, raw, message.key if name == "key" else message.value)
    except DecodeError as error:
        if (cause := error.__cause__) is not None and is_of_all(cause):
            raise cause from None
        return ShownPart(name, raw, note=reason(error.__cause__ or error))


def reason(error: BaseException) -> str:
    """Returns the text of an error, after its type where the text alone may say little."""
    return str(error) if isinstance(error, (ValueError, AwokeError)) else f"{type(error).__name__}: {error}"


def names_schema(key: bytes, headers: Headers) -> bool:
    """Returns whether a key looks as if it named a schema."""
    return key[:1] == b"\0" or any(name == wire_format.HEADERS["key"] for name, _ in headers)


def is_of_all(cause: BaseException) -> bool:
    """Returns whether an error concerns all messages: the registry does not answer, a library is missing, Ctrl-C."""
    if isinstance(cause, SchemaNotFound):
        return False
    return isinstance(cause, (RegistryError, ConfigError)) or not isinstance(cause, Exception)
