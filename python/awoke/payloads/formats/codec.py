"""The seam between values and bytes: a codec encodes what is sent and decodes what handlers get.

Bytes and text pass every codec untouched, and so do tombstones (None). A new codec is one class, given to
`App(codec=…)` and `Producer(codec=…)`. Dead letters keep the bytes and need no codec. The bodies of remote calls are
JSON by their protocol (docs/rpc_protocol.md).
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from awoke.payloads.formats import json, protobuf_classes, pydantic_models
from awoke.payloads.formats.json_types import check_writable
from awoke.payloads.secret_fields import unmarked

Decoder = Callable[[bytes], Any]
"""Returns the value that bytes encode; any exception means that they do not decode."""


class Codec(Protocol):
    """Turns values into bytes and back. Any thread calls it."""

    def encode(self, value: Any) -> bytes:
        """Returns a value as bytes. Called for each message whose value is neither bytes, text nor None.

        Raises:
            EncodeError: The value can't be encoded.
        """
        ...

    def decoder(self, value_type: Any) -> Decoder:
        """Returns the function that decodes values of this type, which is neither `bytes` nor `str`.

        Called once for each route. Of `Order | None` it gets the whole type; a tombstone is None without its help.

        Raises:
            TypeError: Bytes can't be decoded as this type; the text says why, and what can be used.
        """
        ...

    def check_encodable(self, value_type: Any) -> None:
        """Checks the type that a handler says it returns; does nothing by default.

        Raises:
            TypeError: Values of this type can't be encoded; the text says why.
        """
        return


class TypeCodec(Codec):
    """The codec where none is given: protobuf's own bytes for its classes, and JSON for all other types.

    JSON is read and written by msgspec, and by pydantic for its models.
    """

    def encode(self, value: Any) -> bytes:
        """Returns a value as its class writes itself, or as JSON.

        Raises:
            EncodeError: The value can't be written.
        """
        if protobuf_classes.is_message(type(value)):  # type: ignore[arg-type]
            return protobuf_classes.encode(value)
        return json.encode(value)

    def decoder(self, value_type: Any) -> Decoder:
        """Returns the function that reads a class of protobuf's, or else JSON, checked against the type.

        Raises:
            TypeError: JSON can't be read as this type.
        """
        if (message_class := protobuf_classes.class_in(value_type)) is not None:
            return protobuf_classes.decoder(message_class)
        return json.json_decoder(value_type)

    def check_encodable(self, value_type: Any) -> None:
        """Checks that values of this type are not certainly of a class that JSON can't hold.

        Raises:
            TypeError: Names the part that can't be written, and what can be used.
        """
        if protobuf_classes.class_in(value_type) is None:
            check_writable(value_type)


BY_TYPE = TypeCodec()


def decoder_for(value_type: Any, codec: Codec = BY_TYPE) -> Decoder | None:
    """Returns the decoder of a route's values: None for bytes, UTF-8 for `str`, the codec's otherwise.

    A tombstone decodes as None by a type that takes it (`Order | None`), and does not decode by any other.

    Raises:
        TypeError: The codec can't decode this type.
    """
    value_type = unmarked(value_type)
    if value_type is None or value_type in (bytes, bytes | None):
        return None
    if value_type is str:
        return bytes.decode
    if value_type == str | None:
        return taking_none(bytes.decode)
    decode = codec.decoder(value_type)
    if takes_none(value_type):
        return taking_none(decode)
    return decode if codec is BY_TYPE else refusing_none(decode)  # Its decoders refuse None themselves, in less time.


def takes_none(value_type: Any) -> bool:
    """Returns whether None is a value of this type."""
    if value_type is Any or type(None) in typing.get_args(value_type):
        return True
    if pydantic_models.mentions_model(value_type):
        return pydantic_models.takes_none(value_type)
    try:
        msgspec.convert(None, value_type)
    except (msgspec.ValidationError, TypeError):  # msgspec knows no types of other codecs.
        return False
    return True


def refusing_none(decode: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a decoder that refuses tombstones."""

    def decode_bytes(value: bytes | None, *headers: Any) -> Any:
        if value is None:
            raise TypeError("a tombstone has no value")
        return decode(value, *headers)

    return decode_bytes


def taking_none(decode: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a decoder that decodes a tombstone as None."""

    def decode_or_none(value: bytes | None, *headers: Any) -> Any:
        return None if value is None else decode(value, *headers)

    return decode_or_none
