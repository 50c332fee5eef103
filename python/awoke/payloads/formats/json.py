"""Reads and writes values as JSON, by msgspec, or by pydantic for its models."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.json_types import check_readable
from awoke.payloads.formats.unquoted import unquoting

Read = Callable[[bytes], Any]


def encode(value: Any) -> bytes:
    """Returns a value as JSON.

    Raises:
        EncodeError: Neither msgspec nor pydantic can write it.
    """
    try:
        # msgspec would write a dataclass of pydantic's itself. Without pydantic this costs a message one look-up.
        if "pydantic" in _modules and _is_model(type(value)):  # type: ignore[arg-type]
            return pydantic_models.to_json(value)
        return _encoder.encode(value)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise EncodeError(f"a value of type {type(value).__qualname__} can't be written as JSON: {error}") from error


def json_decoder(value_type: Any) -> Read:
    """Returns a function that reads JSON as this type, and raises `msgspec.MsgspecError` for other JSON.

    The text of that error has no part of the value.

    Raises:
        TypeError: JSON can't be read as this type; names its part, and what can be used.
    """
    check_readable(value_type)
    if pydantic_models.mentions_model(value_type):
        return pydantic_models.decoder_for(value_type)
    return unquoting(msgspec.json.Decoder(value_type, dec_hook=read_model).decode, value_type)


def read(body: bytes, value_type: Any) -> Any:
    """Returns JSON as a value of this type.

    Raises:
        msgspec.MsgspecError: The JSON is of another type. ConfigError: JSON can't be read as this type.
    """
    return result_decoder(value_type)(body)


def result_decoder(value_type: Any) -> Read:
    """Returns a function that reads JSON as a result of this type; the function is cached.

    Raises:
        ConfigError: JSON can't be read as this type.
    """
    try:
        return _kept_decoder(value_type)
    except TypeError as error:
        raise ConfigError(f"returns={value_type!r}: {error}", "returns") from None


def read_model(kind: Any, value: Any) -> Any:
    """Reads a pydantic model inside a type of msgspec's, from JSON that was parsed already."""
    if not pydantic_models.is_model(kind):
        return value  # msgspec checks the type.
    return _kept_decoder(kind)(_encoder.encode(value))


def _write_model(value: Any) -> msgspec.Raw:
    if pydantic_models.is_model(type(value)):
        return msgspec.Raw(pydantic_models.to_json(value))
    raise TypeError(f"Encoding objects of type {type(value).__qualname__} is unsupported")


_modules = sys.modules
_is_model = functools.lru_cache(maxsize=1_024)(pydantic_models.is_model)
_encoder = msgspec.json.Encoder(enc_hook=_write_model)
_kept_decoder = functools.lru_cache(maxsize=256)(json_decoder)
