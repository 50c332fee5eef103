"""MessagePack: values of a type that msgspec knows, in fewer bytes than JSON. Needs no registry."""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats.format import Decode, Description, Encode, Format
from awoke.payloads.formats.json_types import check_readable
from awoke.payloads.formats.unquoted import unquoting
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas


class MessagePackFormat(Format):
    """MessagePack by msgspec."""

    def __init__(self, value_type: Any = None) -> None:
        self.value_type = value_type

    def encode(self, value: Any) -> bytes:
        """Returns a value as MessagePack.

        Raises:
            EncodeError: msgspec can't write it.
        """
        try:
            return _encode(value)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            text = f"a value of type {type(value).__qualname__} can't be written as MessagePack: {error}"
            raise EncodeError(text) from error

    def description(self) -> Description:
        """Returns the type."""
        return Description("application/msgpack", self.value_type)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads MessagePack, checked against the type.

        Raises:
            TypeError: msgspec can't read values of this type.
        """
        value_type = Any if self.value_type is None else self.value_type
        check_readable(value_type)
        return unquoting(msgspec.msgpack.Decoder(value_type).decode, value_type)

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes MessagePack."""
        return lambda value: (_encode(value), ())


def msgpack(value_type: Any = None) -> MessagePackFormat:
    """Returns the format of values that are written as MessagePack; None: of any type that MessagePack tells apart.

    As the default of an app, `App(format=awoke.msgpack())`, it writes and reads all types that msgspec knows.

    Raises:
        ConfigError: msgspec can't read values of this type; names its part.
    """
    if value_type is not None:
        try:
            check_readable(value_type)
        except TypeError as error:
            raise ConfigError(f"awoke.msgpack({value_type!r}): {error}", "value") from None
    return MessagePackFormat(value_type)


_encode = msgspec.msgpack.Encoder().encode
