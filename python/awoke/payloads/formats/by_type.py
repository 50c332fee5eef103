"""The default format of an app: protobuf's classes write themselves, and all other types are JSON."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import protobuf_classes, pydantic_models
from awoke.payloads.formats.class_fields import members, reads_by_own_code
from awoke.payloads.formats.format import Decode, Description, Direction, Encode, Format, refusing_values
from awoke.payloads.formats.json import Write, json_decoder, proved_writer, writer_of
from awoke.payloads.formats.json_types import check_readable, check_writable
from awoke.payloads.formats.model_round_trips import check_round_trip
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas


class ByTypeFormat(Format):
    """Writes each value as its class says; `BY_TYPE` is the only one."""

    def encode(self, value: Any) -> bytes:
        """Returns a value as its class writes itself, or as JSON.

        Raises:
            EncodeError: The value can't be written.
        """
        try:
            write = _writers[type(value)]
        except KeyError:
            write = _new_writer(type(value))
        return write(value)

    def of(self, value_type: Any) -> Format:
        """Returns protobuf's own format for one of its classes, and JSON for any other type."""
        message_class = protobuf_classes.class_in(value_type)
        return JsonFormat(value_type) if message_class is None else MessageFormat(value_type, message_class)


class JsonFormat(Format):
    """JSON of a type, read and written by msgspec, and by pydantic for its models."""

    refuses_none = True

    def __init__(self, value_type: Any, direction: Direction = "both") -> None:
        self.value_type, self._direction = value_type, direction
        self._is_mixed = is_mixed(value_type)
        self.needs_type = self._is_mixed or has_strings(value_type)

    def encode(self, value: Any) -> bytes:
        """Returns a value as JSON.

        Raises:
            EncodeError: The value can't be written.
        """
        kind: Any = type(value)
        return writer_of(kind, self._direction == "write")(value)

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes JSON; one that refuses all values if they are only read."""
        if self._direction == "read":
            return refusing_values(topic)
        if self._direction == "write" or not self._is_mixed:
            return super().encoder(topic, part, schemas)
        write = proved_writer(self.value_type)
        return lambda value: (write(value), ())

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads JSON, checked against the type.

        Raises:
            TypeError: JSON can't be read as this type, or its values are only written.
        """
        if self._direction == "write":
            raise TypeError(f"the format of topic {topic!r} is declared with direction='write', and reads nothing")
        return json_decoder(self.value_type)

    def check_writable(self) -> None:
        """Checks that values of the type are not certainly of a class that JSON can't hold.

        Raises:
            TypeError: Names the part that can't be written, and what can be used.
        """
        if self._direction != "write":
            check_writable(self.value_type)

    def description(self) -> Description:
        """Returns the type."""
        return Description("application/json", self.value_type)


def is_mixed(value_type: Any) -> bool:
    """Tells whether a value's class does not tell enough: pydantic reads what msgspec writes, beside its own models,
    or a collection has values of classes whose own code decides what is read."""
    if pydantic_models.mentions_model(value_type):
        return not all(map(_is_alike, _leaves(value_type)))
    return any(typing.get_origin(each) is not None for each in members(value_type)) and reads_by_own_code(value_type)


def _leaves(hint: Any) -> Iterator[Any]:
    arguments = () if typing.get_origin(hint) in (typing.Annotated, typing.Literal) else typing.get_args(hint)
    if not arguments or pydantic_models.is_model(hint):
        yield hint
    for each in arguments:
        yield from _leaves(each)


def _is_alike(hint: Any) -> bool:
    """Tells whether pydantic reads what is written for a type outside of its models."""
    return pydantic_models.is_model(hint) or hint in (bool, int, str, None, type(None), ...)


def has_strings(value_type: Any) -> bool:
    """Tells whether a value of a type may be a string, which without its type would be sent as it is."""
    kinds = members(value_type)
    is_literal = any(typing.get_origin(kind) is typing.Literal for kind in kinds)
    return is_literal or any(isinstance(kind, type) and issubclass(kind, str) for kind in kinds)


class MessageFormat(Format):
    """The bytes of a class of protobuf messages, without a registry."""

    refuses_none = True

    def __init__(self, value_type: Any, message_class: Any) -> None:
        self.value_type, self._class = value_type, message_class

    def encode(self, value: Any) -> bytes:
        """Returns a message as its class writes it.

        Raises:
            EncodeError: The value is of another class, or a required field is missing.
        """
        if not isinstance(value, self._class):
            raise EncodeError(f"a value of type {type(value).__qualname__} is no {self._class.__qualname__}")
        return protobuf_classes.encode(value)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads messages of the class."""
        return protobuf_classes.decoder(self._class)

    def description(self) -> Description:
        """Returns the name of the message."""
        return Description("application/protobuf", {"title": self._class.DESCRIPTOR.full_name})


def json(value_type: Any, *, direction: Direction = "both") -> JsonFormat:
    """Returns the format of values that are written as JSON, as those of a plain type are.

    It is needed for a model of pydantic's that is not meant to read what it writes, because of its aliases, computed
    fields or serializers: `direction` says that it is only read, or only written.

    Raises:
        ConfigError: JSON can't be read as the type, or the type does not read what it writes.
    """
    try:
        check_readable(value_type)
        check_round_trip(value_type, direction)
    except TypeError as error:
        raise ConfigError(f"awoke.json({getattr(value_type, '__qualname__', value_type)}): {error}", "value") from None
    return JsonFormat(value_type, direction)


def _new_writer(kind: Any) -> Write:
    if len(_writers) > WRITERS_MAX:
        _writers.clear()
    write = _writers[kind] = protobuf_classes.encode if protobuf_classes.is_message(kind) else writer_of(kind)
    return write


WRITERS_MAX = 1_000
_writers: dict[type, Write] = {}
"""The function that writes values of each class. A plain dict is read in half of the time that others take."""
BY_TYPE = ByTypeFormat()
