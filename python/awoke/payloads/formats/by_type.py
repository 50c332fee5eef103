"""The default format of an app: protobuf's classes write themselves, and all other types are JSON."""

from __future__ import annotations

from typing import Any

from awoke.errors import EncodeError
from awoke.payloads.formats import json, protobuf_classes
from awoke.payloads.formats.format import Decode, Description, Format
from awoke.payloads.formats.json_types import check_writable
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas


class ByTypeFormat(Format):
    """Writes each value as its class says; `BY_TYPE` is the only one."""

    def encode(self, value: Any) -> bytes:
        """Returns a value as its class writes itself, or as JSON.

        Raises:
            EncodeError: The value can't be written.
        """
        if protobuf_classes.is_message(type(value)):  # type: ignore[arg-type]
            return protobuf_classes.encode(value)
        return json.encode(value)

    def of(self, value_type: Any) -> Format:
        """Returns protobuf's own format for one of its classes, and JSON for any other type."""
        message_class = protobuf_classes.class_in(value_type)
        return JsonFormat(value_type) if message_class is None else MessageFormat(value_type, message_class)


class JsonFormat(Format):
    """JSON of a type, read and written by msgspec, and by pydantic for its models."""

    refuses_none = True

    def __init__(self, value_type: Any) -> None:
        self.value_type = value_type

    def encode(self, value: Any) -> bytes:
        """Returns a value as JSON.

        Raises:
            EncodeError: The value can't be written.
        """
        return json.encode(value)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads JSON, checked against the type.

        Raises:
            TypeError: JSON can't be read as this type.
        """
        return json.json_decoder(self.value_type)

    def check_writable(self) -> None:
        """Checks that values of the type are not certainly of a class that JSON can't hold.

        Raises:
            TypeError: Names the part that can't be written, and what can be used.
        """
        check_writable(self.value_type)

    def description(self) -> Description:
        """Returns the type."""
        return Description("application/json", self.value_type)


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


BY_TYPE = ByTypeFormat()
