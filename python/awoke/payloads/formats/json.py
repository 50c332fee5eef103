"""Reads and writes values as JSON, by msgspec, or by pydantic for its models."""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable
from typing import Any

import msgspec

from awoke.errors import ConfigError, EncodeError
from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.class_fields import (
    has_fields,
    has_named_union,
    is_same,
    private_in,
    reads_by_own_code,
)
from awoke.payloads.formats.json_types import check_readable
from awoke.payloads.formats.json_values import NULL, OFFSET, doubts_about, unwritable
from awoke.payloads.formats.model_round_trips import round_trip
from awoke.payloads.formats.unquoted import unquoting

Read = Callable[[bytes], Any]
Write = Callable[[Any], bytes]

REFUSALS = (TypeError, ValueError, msgspec.MsgspecError)
NOT_FINITE = (NULL, b"NaN", b"Infinity")
"""What pydantic writes for a number that is not finite."""


def encode(value: Any) -> bytes:
    """Returns a value as JSON.

    Raises:
        EncodeError: Neither msgspec nor pydantic can write it, or it would be read as another value.
    """
    kind: Any = type(value)
    return writer_of(kind)(value)


@functools.lru_cache(maxsize=1_024)
def writer_of(kind: Any, is_one_way: bool = False) -> Write:
    """Returns the function that writes values of a class as JSON; it raises `EncodeError`.

    `is_one_way`: they are not read as their own class again.
    """
    encoder = _encoders[is_one_way]
    if pydantic_models.is_model(kind):
        return _model_writer(kind, is_one_way)
    if has_fields(kind):
        return _class_writer(kind, encoder.encode, is_one_way)
    if issubclass(kind, (str, int, bytes, type(None))):
        return _checked_writer(encoder.encode, ())
    return _checked_writer(encoder.encode, (NULL,), True)


def _class_writer(kind: type, write: Write, is_one_way: bool) -> Write:
    """Returns the function that writes values of a class with fields that msgspec writes."""
    if (private := private_in(kind)) is not None:
        return _failing(f"{private} begins with an underscore: msgspec neither writes nor reads it")
    if not is_one_way and has_named_union(kind):
        try:
            json_decoder(kind)
        except TypeError as error:
            return _failing(f"it can't be read again: {error}")
    doubts = doubts_about(kind)
    if (doubts.has_derived or reads_by_own_code(kind)) and not is_one_way:
        write = _proved_writer(write, kind)
    return _checked_writer(write, doubts.nulls, doubts.has_times)


def _model_writer(kind: type, is_one_way: bool) -> Write:
    """Returns the function that writes models of a class of pydantic's."""
    found = round_trip(kind)
    if not is_one_way and found.problem is not None:
        remedy = f"if it is never read as {kind.__qualname__}: awoke.json(…, direction='write')"
        return _failing(f"{found.problem}; {remedy}")
    if not is_one_way and not found.is_sure:
        return _checked_writer(_proved_writer(pydantic_models.to_json, kind), ())
    marks = NOT_FINITE if found.has_numbers else ()
    return _checked_writer(pydantic_models.to_json, marks, found.has_times, (float, decimal.Decimal))


def _failing(text: str) -> Write:
    def fail(value: Any) -> bytes:
        raise _refusal(value, text)

    return fail


def _checked_writer(
    write: Write, nulls: tuple[bytes, ...], has_times: bool = False, numbers: tuple[type, ...] = (float,)
) -> Write:
    """Returns a function that also looks for what JSON can't hold: in values whose JSON looks as if there were some."""

    def checked(value: Any, data: bytes) -> bytes:
        if any(each in data for each in nulls) or (has_times and OFFSET.search(data)):
            problem = unwritable(value, numbers)
            if problem is not None:
                raise _refusal(value, problem)
        return data

    def write_unchecked(value: Any) -> bytes:
        try:
            return write(value)
        except REFUSALS as error:
            raise _refusal(value, error) from error

    if not nulls and not has_times:
        return write_unchecked
    if len(nulls) > 1 or has_times:

        def write_doubted(value: Any) -> bytes:
            try:
                data = write(value)
            except REFUSALS as error:
                raise _refusal(value, error) from error
            return checked(value, data)

        return write_doubted
    mark = nulls[0]

    def write_checked(value: Any) -> bytes:
        try:
            data = write(value)
        except REFUSALS as error:
            raise _refusal(value, error) from error
        # `rfind` takes the time of one more call, because it parses its arguments, and `in` more than that.
        return checked(value, data) if data.rpartition(mark)[1] else data

    return write_checked


def _refusal(value: Any, why: object) -> EncodeError:
    return EncodeError(f"a value of type {type(value).__qualname__} can't be written as JSON: {why}")


def proved_writer(kind: Any) -> Write:
    """Returns the function that writes values of any class, and reads each again as this type."""
    return _proved_writer(encode, kind)


def _proved_writer(write: Write, kind: Any) -> Write:
    """Returns a function that reads again what it has written: whether that is equal depends on the value."""
    kept: list[Read] = []

    def write_proved(value: Any) -> bytes:
        data = write(value)
        if not kept:
            kept.append(json_decoder(kind))
        try:
            is_read = is_same(kept[0](data), value)
        except Exception as error:
            problem = f"it can't be read again: {error}"
        else:
            if is_read:
                return data
            problem = "what is written would be read as another value"
        raise ValueError(problem)

    return write_proved


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


def _model_hook(is_one_way: bool) -> Callable[[Any], msgspec.Raw]:
    def write_model(value: Any) -> msgspec.Raw:
        kind: Any = type(value)
        if pydantic_models.is_model(kind):
            return msgspec.Raw(writer_of(kind, is_one_way)(value))
        raise TypeError(f"Encoding objects of type {kind.__qualname__} is unsupported")

    return write_model


_encoders = {is_one_way: msgspec.json.Encoder(enc_hook=_model_hook(is_one_way)) for is_one_way in (False, True)}
_encoder = _encoders[False]
_kept_decoder = functools.lru_cache(maxsize=256)(json_decoder)
