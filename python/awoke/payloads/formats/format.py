"""Formats: each turns the keys or the values of one topic into bytes and back.

`awoke.avro(Order)`, `awoke.msgpack(Order)` and the like return one. A route, a topic, a producer and a reader take a
format where they take a type. For a plain type they use the default format of their app, which is asked for each type
that comes up (`Format.of`).
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import msgspec

from awoke._native import Decoders
from awoke.errors import AwokeError, ConfigError, EncodeError
from awoke.payloads.formats import pydantic_models
from awoke.payloads.formats.class_fields import is_same
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas, loading
from awoke.payloads.secret_fields import unmarked

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of a message."""
Payload = tuple[bytes, tuple[tuple[str, bytes], ...]]
"""A key or a value as bytes, and the headers that say how to read them."""
Encode = Callable[..., Payload]
"""Returns the payload of a value; takes the message's key, too, if its format binds values to it. Any exception means
that the value can't be encoded."""
Decode = Callable[..., Any]
"""Returns the value of bytes; takes the message's headers, too, if its format reads them. Any exception means that the
bytes do not decode."""

Direction = Literal["both", "read", "write"]
"""Whether a format writes what it reads itself. A type that does not read what it writes must say which one it does."""

DESCRIBING = {
    "value": ("__value_schema_id", "awoke-encryption-key", "awoke-encryption-version"),
    "key": ("__key_schema_id",),
}
"""The headers by which formats say how a part of the message is to be read."""
EVENT = "ce_"
"""The attributes of a CloudEvent are headers that begin so."""


class Description(NamedTuple):
    """The bytes of a format, for documents that describe an app."""

    content_type: str
    schema: Any = None
    """As the program has it; None if it has none. A type stands for its JSON Schema."""
    schema_format: str | None = None
    """The media type of the schema; None for JSON Schema."""


class Format:
    """Turns the keys or the values of one topic into bytes and back. Any thread uses it.

    Override `encode` and `decode`. Such a format can also be the default of an app (`App(format=…)`): awoke then asks
    it for a format of each type (`of`). A format that needs the topic, the headers or the schemas of a registry
    overrides `encoder` and `decoder` instead. Neither sees a tombstone.
    """

    value_type: Any = None
    """The type of the values; None if they may be of any."""
    reads_headers: bool = False
    """True if its decoders take the headers of the message, too."""
    needs_registry: bool = False
    """True if it reads or writes schemas of a registry."""
    is_encrypted: bool = False
    """True if its bytes are encrypted: no value may leave without it, also not as bytes."""
    binds_key: bool = False
    """True if its encoders and decoders of values take the message's key as well, as their last argument."""
    needs_type: bool = False
    """True if a value can't be written by its class alone: the type of the topic says more."""
    refuses_none: bool = False
    """True if its decoders raise an error for None by themselves, so that nothing has to stand around them."""

    def encode(self, value: Any) -> bytes:
        """Returns a value as bytes. As an app's default it gets all values that are neither bytes, text nor None.

        Raises:
            EncodeError: The value can't be encoded.
        """
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        """Returns the value that bytes encode. Any exception means that they do not decode."""
        raise NotImplementedError

    def of(self, value_type: Any) -> Format:
        """Returns the format for values of this type, which is neither `bytes` nor `str`: a copy that has the type.

        Only the default of an app is asked. For `Order | None` it gets the whole type, although None never reaches it.
        A type that can't be read is refused by `decoder`, one that can't be written by `check_writable`.
        """
        return self._with(value_type=value_type)

    def within(self, default: Format) -> Format:
        """Returns this format for an app with this default; it matters to formats around a plain type."""
        return self

    def encoder(self, topic: str, part: Part, schemas: Schemas) -> Encode:
        """Returns the function that encodes the keys or the values of a topic.

        Does not block, nor does the function: for a schema that is not loaded yet it raises `SchemaNeeded`.
        """
        encode = self.encode
        return lambda value: (encode(value), ())

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that decodes the keys or the values of a topic; called once for each route.

        Does not block, nor does the function: for a schema that is not loaded yet it raises `SchemaNeeded`.

        Raises:
            TypeError: Bytes can't be decoded as its type; the text says why, and what can be used.
        """
        return self.decode

    def is_encoded(self, value: Any, headers: Headers) -> bool:
        """Tells whether a value that is to be sent with these headers is in this format already: bytes are."""
        return isinstance(value, bytes)

    def check_writable(self) -> None:
        """Checks the type of the values, which a handler says it returns; does nothing by default.

        Raises:
            TypeError: Values of this type can't be encoded; the text says why.
        """
        return

    def check_loaded(self, topic: str, part: Part, schemas: Schemas) -> None:
        """Checks that a first value can be written at once, as far as is known before there is one.

        Raises:
            SchemaNeeded: A schema is not loaded yet.
        """
        return

    def description(self) -> Description:
        """Returns what documents say of the bytes; by default only the type. Does not block."""
        return Description("", self.value_type)

    def _with(self, **changed: Any) -> Self:
        found = copy.copy(self)
        vars(found).update(changed)
        return found


class BytesFormat(Format):
    """Leaves bytes as they are; the format where no type is said."""

    value_type = bytes | None

    def encode(self, value: Any) -> bytes:
        """Returns the value itself, which is bytes."""
        return value  # type: ignore[no-any-return]

    def decode(self, data: bytes) -> bytes:
        """Returns the bytes themselves."""
        return data

    def description(self) -> Description:
        """Returns that they are bytes."""
        return Description("application/octet-stream")


class TextFormat(Format):
    """Text as UTF-8."""

    refuses_none = True

    def __init__(self, value_type: Any = str) -> None:
        self.value_type = value_type

    def encode(self, value: Any) -> bytes:
        """Returns text as UTF-8."""
        return str.encode(value)

    def decoder(self, topic: str, part: Part, schemas: Schemas) -> Decode:
        """Returns the function that reads UTF-8."""
        return bytes.decode

    def description(self) -> Description:
        """Returns that it is text."""
        return Description("text/plain", str)


BYTES = BytesFormat()


def format_of(said: Any, default: Format) -> Format:
    """Returns the format that was said, or that of the type that was said: bytes, text, or the default's for it."""
    if isinstance(said, Format):
        return said.within(default)
    value_type = unmarked(said)
    if value_type is None or value_type in (bytes, bytes | None):
        return BYTES
    return TextFormat(value_type) if value_type in (str, str | None) else default.of(value_type)


def checked_default(format: Format) -> Format:
    """Returns the format that the option `format` names.

    Raises:
        ConfigError: It can't write any value by itself, as a default must.
    """
    if isinstance(format, Format) and type(format).encode is not Format.encode:
        return format
    text = f"format={format!r} writes for one topic: give it to a topic or a route; a default has `encode`"
    raise ConfigError(f"{text}, as awoke.msgpack() and your own subclass of awoke.Format", "format")


def type_of(said: Any) -> Any:
    """Returns the type of a format's values, or the type itself."""
    return said.value_type if isinstance(said, Format) else said


def decoders_of(value: Format, key: Format, topic: str, schemas: Schemas, *, loads: bool = False) -> Decoders | None:
    """Returns the decoders of a topic's messages, as the engine takes them; None if all stays bytes.

    They load missing schemas on the calling thread where `loads` says so.

    Raises:
        TypeError: Bytes can't be decoded as one of the types.
    """
    decode_value, decode_key = decoder_of(value, topic, "value", schemas), decoder_of(key, topic, "key", schemas)
    if decode_value is None and decode_key is None:
        return None
    reads_headers = value.reads_headers or key.reads_headers
    if reads_headers:
        decode_value, decode_key = with_headers(value, decode_value), with_headers(key, decode_key)
    if loads:
        decode_value, decode_key = decode_value and loading(decode_value), decode_key and loading(decode_key)
    return Decoders(decode_value, decode_key, with_headers=reads_headers, with_key=value.binds_key)


def decoder_of(format: Format, topic: str, part: Part, schemas: Schemas) -> Decode | None:
    """Returns the decoder of a topic's keys or values, which takes tombstones, too; None if they stay bytes.

    A tombstone decodes as None by a type that takes it (`Order | None`), and does not decode by any other.

    Raises:
        TypeError: Bytes can't be decoded as the type.
    """
    if format is BYTES:
        return None
    decode = format.decoder(topic, part, schemas)
    if format.value_type is None or takes_none(format.value_type):
        return taking_none(decode)
    return decode if format.refuses_none else refusing_none(decode)


def reader_of(format: Format, topic: str, part: Part, schemas: Schemas) -> Decode:
    """Returns a decoder that takes bytes, or None, and headers, whether its format reads headers or not.

    Raises:
        TypeError: Bytes can't be decoded as the type.
    """
    decode = decoder_of(format, topic, part, schemas)
    return (lambda data, *_: data) if decode is None else with_headers(format, decode)


@typing.overload
def with_headers(format: Format, decode: Decode) -> Decode: ...
@typing.overload
def with_headers(format: Format, decode: None) -> None: ...
def with_headers(format: Format, decode: Decode | None) -> Decode | None:
    """Returns a decoder of a format as a function that takes headers in any case."""
    if decode is None or format.reads_headers:
        return decode
    return lambda data, *_: decode(data)


def takes_none(value_type: Any) -> bool:
    """Returns whether None is a value of this type."""
    if value_type is Any or type(None) in typing.get_args(value_type):
        return True
    if pydantic_models.mentions_model(value_type):
        return pydantic_models.takes_none(value_type)
    try:
        msgspec.convert(None, value_type)
    except (msgspec.ValidationError, TypeError):  # msgspec knows no types of other formats.
        return False
    return True


def refusing_none(decode: Decode) -> Decode:
    """Returns a decoder that refuses tombstones."""

    def decode_bytes(value: bytes | None, *headers: Any) -> Any:
        if value is None:
            raise TypeError("a tombstone has no value")
        return decode(value, *headers)

    return decode_bytes


def taking_none(decode: Decode) -> Decode:
    """Returns a decoder that decodes a tombstone as None."""

    def decode_or_none(value: bytes | None, *headers: Any) -> Any:
        return None if value is None else decode(value, *headers)

    return decode_or_none


def encoder_of(said: Any, topic: str, part: Part, default: Format, schemas: Schemas) -> Encode | None:
    """Returns the encoder of a topic's keys or values by their type or format; None where the producer itself does it.

    The producer writes any value in its default format, but as a key it takes only bytes and text.
    """
    if isinstance(said, Format):
        return _checked(said.within(default).encoder(topic, part, schemas), topic, part, with_key=said.binds_key)
    if said in (None, bytes, str, bytes | None, str | None):
        return None
    typed = default.of(said)
    if typed.needs_type:
        return _checked(typed.encoder(topic, part, schemas), topic, part)
    if part == "value":
        return None
    return _checked(_plain_encoder(default), topic, part)


def writer_of(said: Any, topic: str, part: Part, default: Format, schemas: Schemas) -> Encode:
    """Returns the encoder of a type or a format, for a format around it.

    Bytes stay as they are, unless the format inside encrypts them.
    """
    is_format = isinstance(said, Format)
    if is_format and said.binds_key:
        text = f"topic {topic!r}: a format that binds values to their key can't be inside of another one"
        raise ConfigError(text, "value")
    if not is_format:
        write = default.encode

        def encode_plain(value: Any) -> Payload:
            if isinstance(value, bytes):
                return value, ()
            return value.encode() if isinstance(value, str) else write(value), ()

        return encode_plain
    encode: Encode = said.within(default).encoder(topic, part, schemas)
    if said.is_encrypted:
        return encode
    return lambda value: (value, ()) if isinstance(value, bytes) else encode(value)


def refusing_values(topic: str) -> Encode:
    """Returns the encoder of a format that is only read."""

    def refuse(value: Any) -> Payload:
        raise EncodeError(f"the format of topic {topic!r} is declared with direction='read', and writes nothing")

    return refuse


def proving(encode: Encode, read: Callable[[bytes], Any], name: str, begin: int = 0) -> Encode:
    """Returns an encoder that reads again what it has written: whether that is equal depends on the value.

    `name` is the format's, for errors. The payload begins at `begin`.
    """

    def encode_proved(value: Any) -> Payload:
        data, headers = encode(value)
        try:
            found = read(data[begin:])
            is_for_class = isinstance(value, Mapping) and not isinstance(found, Mapping)
            is_read = is_for_class or is_same(found, value)
        except Exception as error:
            problem = f"it can't be read again: {error}"
        else:
            if is_read:
                return data, headers
            problem = "what is written would be read as another value"
        raise EncodeError(f"a value of type {type(value).__qualname__} can't be written as {name}: {problem}")

    return encode_proved


def _plain_encoder(default: Format) -> Encode:
    encode = default.encode
    return lambda value: (value.encode() if isinstance(value, str) else encode(value), ())


def _checked(encode: Encode, topic: str, part: Part, *, with_key: bool = False) -> Encode:
    """Returns an encoder whose errors are awoke's; it takes the message's key only `with_key`, which costs time."""

    def encode_value(value: Any) -> Payload:
        try:
            return encode(value)
        except AwokeError:
            raise
        except Exception as error:
            failure = _failed(value, error, topic, part)
        raise failure

    def encode_with_key(value: Any, key: Any = None) -> Payload:
        try:
            return encode(value, key)
        except AwokeError:
            raise
        except Exception as error:
            failure = _failed(value, error, topic, part)
        raise failure

    return encode_with_key if with_key else encode_value


def _failed(value: Any, error: Exception, topic: str, part: Part) -> EncodeError:
    # Not the library's own text, nor the error itself: fastavro's quotes the value, and errors are logged.
    kind, why = type(value).__qualname__, type(error).__name__
    where = str(error).rpartition(" on field ")[2] if " on field " in str(error) else ""
    at = f" at field {where!r}" if where.isidentifier() else ""
    return EncodeError(f"a {part} of type {kind} can't be written for topic {topic!r}: {why}{at}")
