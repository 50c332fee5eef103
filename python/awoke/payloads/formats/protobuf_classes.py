"""Classes of protobuf messages: any class that reads and writes its own bytes as protobuf's generated classes do."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable
from typing import Any

from awoke.errors import EncodeError


@functools.lru_cache(maxsize=1_024)
def is_message(kind: Any) -> bool:
    """Returns whether this is a class of messages: of protobuf, or of a library with the same two methods."""
    return callable(getattr(kind, "FromString", None)) and callable(getattr(kind, "SerializeToString", None))


def class_in(value_type: Any) -> Any:
    """Returns the class of messages in `OrderPb` or `OrderPb | None`; None where there is none."""
    is_union = typing.get_origin(value_type) in (typing.Union, types.UnionType)
    kinds = [each for each in (typing.get_args(value_type) if is_union else (value_type,)) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) and is_message(kinds[0]) else None


def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Returns the function that reads messages of a class; the text of its errors has no part of the value."""
    read: Callable[[bytes], Any] = kind.FromString
    if hasattr(getattr(kind, "DESCRIPTOR", None), "file"):
        return read  # Protobuf's own: its texts have the name of the class only.

    def read_unquoted(data: bytes) -> Any:
        try:
            return read(data)
        except Exception as error:
            found = ValueError(f"the bytes are no {kind.__qualname__}: {type(error).__name__}")
        raise found

    return read_unquoted


def encode(message: Any) -> bytes:
    """Returns a message as its class writes it.

    Raises:
        EncodeError: A required field is missing.
    """
    try:
        written: bytes = message.SerializeToString()
    except Exception as error:  # Of any library: protobuf's own is one of its modules that may not be there.
        raise EncodeError(f"a message of type {type(message).__qualname__} can't be written: {error}") from error
    return written
