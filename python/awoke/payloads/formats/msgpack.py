"""MessagePack: values of a type that msgspec knows, in fewer bytes than JSON. Needs no registry."""

from __future__ import annotations

from typing import Any

import msgspec

from awoke.errors import ConfigError
from awoke.payloads.formats.codec import Decoder
from awoke.payloads.formats.format import Description, Encoded, Encoder, Format, Place
from awoke.payloads.formats.json_types import check_readable
from awoke.payloads.formats.unquoted import unquoting
from awoke.payloads.registry.schemas import Schemas


class MessagePackFormat(Format):
    """MessagePack by msgspec."""

    reads_headers = False
    needs_registry = False

    def __init__(self, value_type: Any) -> None:
        self.value_type = value_type

    def description(self) -> Description:
        """Returns the type."""
        return Description("application/msgpack", self.value_type)

    def decoder(self, place: Place, schemas: Schemas) -> Decoder:
        """Returns the function that reads MessagePack, checked against the type."""
        value_type = Any if self.value_type is None else self.value_type
        return unquoting(msgspec.msgpack.Decoder(value_type).decode, value_type)

    def encoder(self, place: Place, schemas: Schemas) -> Encoder:
        """Returns the function that writes MessagePack."""
        encode = msgspec.msgpack.Encoder().encode
        return lambda value: Encoded(encode(value))


def msgpack(value_type: Any = None) -> MessagePackFormat:
    """Returns the format of values that are written as MessagePack; None: of any type that MessagePack tells apart.

    Raises:
        ConfigError: msgspec can't read values of this type; names its part.
    """
    if value_type is not None:
        try:
            check_readable(value_type)
        except TypeError as error:
            raise ConfigError(f"awoke.msgpack({value_type!r}): {error}", "value") from None
    return MessagePackFormat(value_type)
