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
    """What reads values of this type: None for bytes, text for `str`, JSON checked against the type otherwise."""
    if value_type is None or value_type is bytes:
        return None
    if value_type is str:
        return bytes.decode
    return msgspec.json.Decoder(value_type).decode
