"""MessagePack: values of a type that msgspec knows, in fewer bytes than JSON. Needs no registry."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats.class_fields import (
    classes_in,
    fields_of,
    has_fields,
    members,
    private_in,
    reads_by_own_code,
)
from awoke.payloads.formats.format import Decode, Description, Encode, Format, Payload, proving
from awoke.payloads.formats.json_types import check_readable
from awoke.payloads.formats.json_values import doubts_about, unwritable
from awoke.payloads.formats.model_round_trips import models_in
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
            return _encode_times(value)[0]
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
        _check(value_type)
        return unquoting(msgspec.msgpack.Decoder(value_type).decode, value_type)

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that writes MessagePack."""
        encode: Encode = _encode_times if _has_times(self.value_type) else lambda value: (_encode(value), ())
        if self.value_type is None or not _depends_on_value(self.value_type):
            return encode
        return proving(encode, self.decoder(topic, part, schemas), "MessagePack")


def msgpack(value_type: Any = None) -> MessagePackFormat:
    """Returns the format of values that are written as MessagePack; None: of any type that MessagePack tells apart.

    As the default of an app, `App(format=awoke.msgpack())`, it writes and reads all types that msgspec knows.

    Raises:
        ConfigError: msgspec can't read values of this type; names its part.
    """
    if value_type is not None:
        try:
            _check(value_type)
        except TypeError as error:
            raise ConfigError(f"awoke.msgpack({value_type!r}): {error}", "value") from None
    return MessagePackFormat(value_type)


def _check(value_type: Any) -> None:
    """Checks that values of a type can be written and read.

    Raises:
        TypeError: Names the part that can't be, and what can be used.
    """
    check_readable(value_type)
    if models := models_in(value_type):
        name = getattr(models[0], "__qualname__", models[0])
        raise TypeError(f"{name} is pydantic's, which writes no MessagePack; use JSON, or a msgspec.Struct")
    if (private := private_in(value_type)) is not None:
        raise TypeError(f"{private} begins with an underscore: msgspec neither writes nor reads it")


def _has_times(value_type: Any) -> bool:
    """Tells whether there may be a time of a day in values of a type: it is written as text, as in JSON."""
    hints = [value_type, *(field.hint for kind in classes_in(value_type) for field in fields_of(kind))]
    return value_type is None or any(word in str(hint) for hint in hints for word in ("time", "Any", "~", "object"))


def _depends_on_value(value_type: Any) -> bool:
    """Tells whether a value must be read again to know that it is read as it was written."""
    kinds = [kind for kind in members(value_type) if has_fields(kind)]
    return reads_by_own_code(value_type) or any(doubts_about(kind).has_derived for kind in kinds)


def _encode_times(value: Any) -> Payload:
    data = _encode(value)
    if TIME.search(data) and (problem := unwritable(value, ())) is not None:
        raise EncodeError(f"a value of type {type(value).__qualname__} can't be written as MessagePack: {problem}")
    return data, ()


TIME = re.compile(rb"\d:\d\d(\.\d+)?[+-]\d\d:\d\d")
_encode = msgspec.msgpack.Encoder().encode
