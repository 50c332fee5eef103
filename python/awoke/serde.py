"""Values to bytes and back: JSON through msgspec, or pydantic for its models; bytes and text as they are."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from awoke import pydantic_models
from awoke.errors import ConfigError, EncodeError
from awoke.value_types import check_readable

Decoder = Callable[[bytes], Any]


def encode(value: Any) -> bytes:
    """A value as JSON.

    Raises:
        EncodeError: Neither msgspec nor pydantic knows how to write it.
    """
    try:
        # msgspec would write a dataclass of pydantic's itself. Called for each message: no more than a look where it can be.
        if "pydantic" in _modules and _is_model(type(value)):  # type: ignore[arg-type]
            return pydantic_models.to_json(value)
        return _encoder.encode(value)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise EncodeError(f"a value of type {type(value).__qualname__} can't be written as JSON: {error}") from error


def decoder_for(value_type: Any) -> Decoder | None:
    """What reads values of this type: None for bytes, text for `str`, JSON checked against the type otherwise.

    A tombstone is read as None by a type that takes it (`Order | None`), and does not decode as any other.

    Raises:
        TypeError: JSON can't be read as this type; names its part, and what can be used.
    """
    if value_type is None or value_type in (bytes, bytes | None):
        return None
    if value_type is str:
        return bytes.decode
    if value_type == str | None:
        return taking_none(bytes.decode)
    decode = json_decoder(value_type)
    return taking_none(decode) if takes_none(value_type) else decode


def json_decoder(value_type: Any) -> Decoder:
    """Returns a function that reads JSON as this type, and raises `msgspec.MsgspecError` where it is something else.

    Raises:
        TypeError: As `decoder_for`.
    """
    check_readable(value_type)
    if pydantic_models.mentions_model(value_type):
        return pydantic_models.decoder_for(value_type)
    return msgspec.json.Decoder(value_type, dec_hook=read_model).decode


def read(body: bytes, value_type: Any) -> Any:
    """JSON as a value of this type.

    Raises:
        msgspec.MsgspecError: It is something else. ConfigError: JSON can't be read as this type.
    """
    return result_decoder(value_type)(body)


def result_decoder(value_type: Any) -> Decoder:
    """Returns a function that reads JSON as a result of this type; keeps it for the next time.

    Raises:
        ConfigError: JSON can't be read as this type.
    """
    try:
        return _kept_decoder(value_type)
    except TypeError as error:
        raise ConfigError(f"returns={value_type!r}: {error}", "returns") from None


def read_model(kind: Any, value: Any) -> Any:
    """Reads a pydantic model within a type of msgspec's, of which JSON was read already."""
    if not pydantic_models.is_model(kind):
        return value  # msgspec looks whether it is one of the kind.
    return _kept_decoder(kind)(_encoder.encode(value))


def takes_none(value_type: Any) -> bool:
    """Whether None is a value of this type."""
    if pydantic_models.mentions_model(value_type):
        return pydantic_models.takes_none(value_type)
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


def _write_model(value: Any) -> msgspec.Raw:
    if pydantic_models.is_model(type(value)):
        return msgspec.Raw(pydantic_models.to_json(value))
    raise TypeError(f"Encoding objects of type {type(value).__qualname__} is unsupported")


_modules = sys.modules
_is_model = functools.lru_cache(maxsize=1_024)(pydantic_models.is_model)
_encoder = msgspec.json.Encoder(enc_hook=_write_model)
_kept_decoder = functools.lru_cache(maxsize=256)(json_decoder)
