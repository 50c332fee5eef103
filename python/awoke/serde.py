"""Values to bytes and back: JSON through msgspec for typed routes, bytes as they are otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from awoke.errors import EncodeError

Decoder = Callable[[bytes], Any]

_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """A value as JSON.

    Raises:
        EncodeError: msgspec does not know how to write it.
    """
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise EncodeError(f"a value of type {type(value).__qualname__} can't be written as JSON: {error}") from error


def decoder_for(value_type: Any) -> Decoder | None:
    """What reads values of this type: None for bytes, text for `str`, JSON checked against the type otherwise.

    A tombstone is read as None by a type that takes it (`Order | None`), and does not decode as any other.
    """
    if value_type is None or value_type in (bytes, bytes | None):
        return None
    if value_type is str:
        return bytes.decode
    if value_type == str | None:
        return taking_none(bytes.decode)
    decode = msgspec.json.Decoder(value_type).decode
    return taking_none(decode) if takes_none(value_type) else decode


def takes_none(value_type: Any) -> bool:
    """Whether None is a value of this type."""
    try:
        msgspec.convert(None, value_type)
    except msgspec.ValidationError:
        return False
    return True


def taking_none(decode: Decoder) -> Decoder:
    """The same for values that may be None."""

    def decode_or_none(value: bytes | None) -> Any:
        return None if value is None else decode(value)

    return decode_or_none
