"""The seam of formats: a format is a codec of one type, for the keys or the values of one topic.

`awoke.msgpack(Order)`, `awoke.avro(Order)` and the like return one. A route, a topic, a producer and a reader take a
format where they take a type. A codec, in contrast, is the app's, and takes any value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from awoke._native import Decoders
from awoke.errors import AwokeError, EncodeError
from awoke.payloads.formats import protobuf_classes
from awoke.payloads.formats.codec import BY_TYPE, Codec, Decoder, decoder_for, refusing_none, takes_none, taking_none
from awoke.payloads.registry.schemas import Schemas, loading

Part = Literal["key", "value"]

Headers = Sequence[tuple[str, bytes | None]]

HeaderDecoder = Callable[[bytes, Headers], Any]
"""As a `Decoder`; gets the headers of the message, too."""


DESCRIBING = {"value": ("__value_schema_id", "awoke-encryption-key"), "key": ("__key_schema_id",)}
"""The headers by which formats say how a part of the message is to be read."""
EVENT = "ce_"
"""The attributes of a CloudEvent are headers that begin so."""


class Place(NamedTuple):
    """The keys, or the values, of one topic."""

    topic: str
    part: Part


class Encoded(NamedTuple):
    """A value as bytes, and the headers that say how to read them."""

    data: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


Encoder = Callable[[Any], Encoded]
"""Returns a value as bytes; any exception means that it can't be encoded."""


@runtime_checkable
class Format(Protocol):
    """Encodes and decodes values of one type. Any thread calls what it makes."""

    value_type: Any
    """The type of the values; None if they may be of any."""
    reads_headers: bool
    """True if its decoders are of the kind `HeaderDecoder`."""
    needs_registry: bool
    """True if it reads or writes schemas of a registry."""

    def decoder(self, place: Place, schemas: Schemas) -> Decoder | HeaderDecoder:
        """Returns the function that decodes the bytes of this place; never called with a tombstone.

        Called once for each route. Does not block: what the function needs of the registry and is not there yet,
        it raises as `SchemaNeeded`.
        """
        ...

    def encoder(self, place: Place, schemas: Schemas) -> Encoder:
        """Returns the function that encodes values for this place; never called with None."""
        ...

    def is_encoded(self, value: Any, headers: Headers) -> bool:
        """Tells whether a value that is to be sent with these headers is in this format already: bytes are."""
        return isinstance(value, bytes)


@runtime_checkable
class Around(Protocol):
    """A format around a type or another format."""

    def with_codec(self, codec: Codec) -> Format:
        """Returns the same format for an app with this codec, which encodes a plain type inside."""
        ...


class Description(NamedTuple):
    """The bytes of a format, for documents that describe an app."""

    content_type: str
    schema: Any = None
    """As the program has it; None if it has none. A type stands for its JSON Schema."""
    schema_format: str | None = None
    """The media type of the schema; None for JSON Schema."""


@runtime_checkable
class Described(Protocol):
    """A format that documents can describe; those of users need not be."""

    def description(self) -> Description:
        """Returns the description. Does not block."""
        ...


class Coding(NamedTuple):
    """The codec of an app, and the schemas for its formats."""

    codec: Codec = BY_TYPE
    schemas: Schemas = Schemas.none()


class Decoding(NamedTuple):
    """The functions that decode the messages of one topic; None leaves the bytes."""

    value: Callable[..., Any] | None = None
    key: Callable[..., Any] | None = None
    with_headers: bool = False
    """True if both are called with the headers of the message, too."""

    def loading(self) -> Decoding:
        """Returns the same functions, which load the schemas that they need on the calling thread."""
        value, key, with_headers = self
        return Decoding(value and loading(value), key and loading(key), with_headers)

    def native(self) -> Decoders | None:
        """Returns them as the engine takes them; None where there is none."""
        if self.value is None and self.key is None:
            return None
        return Decoders(self.value, self.key, with_headers=self.with_headers)


def decoding_of(value: Any, key: Any, topic: str, coding: Coding = Coding()) -> Decoding:  # noqa: B008 - never changed.
    """Returns the decoders of a topic whose values and keys are of these types or formats.

    Raises:
        TypeError: Bytes can't be decoded as one of the types.
    """
    decode_value, value_reads = _decoder(value, Place(str(topic), "value"), coding)
    decode_key, key_reads = _decoder(key, Place(str(topic), "key"), coding)
    if value_reads == key_reads:
        return Decoding(decode_value, decode_key, value_reads)
    if value_reads:
        return Decoding(decode_value, _without_headers(decode_key), True)
    return Decoding(_without_headers(decode_value), decode_key, True)


def check_loaded(form: Any, place: Place, schemas: Schemas) -> None:
    """Checks that values of a format can be written at once, as far as is known before there is one.

    Raises:
        SchemaNeeded: A schema is not loaded yet.
    """
    check = getattr(form, "check_loaded", None)
    if check is not None:
        check(place, schemas)


def type_of(form: Any) -> Any:
    """Returns the type of a format's values, or the type itself."""
    return form.value_type if isinstance(form, Format) else form


def encoder_of(form: Any, place: Place, coding: Coding = Coding()) -> Encoder | None:  # noqa: B008 - never changed.
    """Returns the encoder of a place by its type or format; None where the producer's own codec does it.

    That one takes any value, but only bytes and text as a key.
    """
    if isinstance(form, Format):
        return _checked(_fitted(form, coding).encoder(place, coding.schemas), place)
    if place.part == "value" or form in (None, bytes, str, bytes | None, str | None):
        return None
    return _checked(_by_codec(coding.codec), place)


def _decoder(form: Any, place: Place, coding: Coding) -> tuple[Callable[..., Any] | None, bool]:
    """Returns the decoder of a place, and whether it reads headers."""
    if not isinstance(form, Format):
        return decoder_for(form, coding.codec), False
    around = taking_none if form.value_type is None or takes_none(form.value_type) else refusing_none
    return around(_fitted(form, coding).decoder(place, coding.schemas)), form.reads_headers


def _fitted(form: Format, coding: Coding) -> Format:
    return form.with_codec(coding.codec) if isinstance(form, Around) else form


def _without_headers(decode: Callable[..., Any] | None) -> Callable[..., Any] | None:
    return None if decode is None else lambda data, _: decode(data)


def decoder_of(form: Any, place: Place, coding: Coding) -> HeaderDecoder:
    """Returns the decoder of a type or a format, for a format around it; it gets the headers in any case.

    Raises:
        TypeError: Bytes can't be decoded as the type.
    """
    decode, reads_headers = _decoder(form, place, coding)
    if decode is None:
        return lambda data, _: data
    with_headers: Any = decode if reads_headers else _without_headers(decode)
    return with_headers  # type: ignore[no-any-return]


def writer_of(form: Any, place: Place, coding: Coding) -> Encoder:
    """Returns the encoder of a type or a format, for a format around it. Bytes stay as they are."""
    is_format = isinstance(form, Format)
    encode = _fitted(form, coding).encoder(place, coding.schemas) if is_format else _by_codec(coding.codec)
    return lambda value: Encoded(value) if isinstance(value, bytes) else encode(value)


def _by_codec(codec: Codec) -> Encoder:
    return lambda value: Encoded(value.encode() if isinstance(value, str) else codec.encode(value))


def _checked(encode: Encoder, place: Place) -> Encoder:
    def encode_value(value: Any) -> Encoded:
        try:
            return encode(value)
        except AwokeError:
            raise
        except Exception as error:
            # Not the library's own text, nor the error itself: fastavro's quotes the value, and errors are logged.
            kind, why = type(value).__qualname__, type(error).__name__
            where = str(error).rpartition(" on field ")[2] if " on field " in str(error) else ""
            at = f" at field {where!r}" if where.isidentifier() else ""
            text = f"a {place.part} of type {kind} can't be written for topic {place.topic!r}: {why}{at}"
            raise EncodeError(text) from None

    return encode_value


def description_of(form: Any, codec: Codec = BY_TYPE) -> Description:
    """Returns the description of a type or format; of one of the user's only its type, and no content type."""
    if form is None or form in (bytes, bytes | None):
        return Description("application/octet-stream")
    if isinstance(form, Described):
        return form.description()
    if form in (str, str | None):
        return Description("text/plain", str)
    if isinstance(form, Format) or codec is not BY_TYPE:
        return Description("", type_of(form))
    if (message_class := protobuf_classes.class_in(form)) is not None:
        return Description("application/protobuf", {"title": message_class.DESCRIPTOR.full_name})
    return Description("application/json", form)
