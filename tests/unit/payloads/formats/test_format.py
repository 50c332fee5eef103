"""Formats: the default of an app, keys and values of topics, headers, tombstones, and errors that quote no value."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke._native import make_batch
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.format import (
    BYTES,
    Format,
    decoders_of,
    encoder_of,
    format_of,
    reader_of,
    takes_none,
    type_of,
)
from awoke.payloads.registry.schemas import NO_SCHEMAS, SchemaNeeded
from tests.support.formats import decoder_for


class Order(msgspec.Struct):
    id: int


class Unknown:
    """A class that msgspec does not know."""


class Reversed(Format):
    """Text backwards, of each type: a default format of user code."""

    def encode(self, value: Any) -> bytes:
        return str(value)[::-1].encode()

    def decode(self, data: bytes) -> Any:
        return self.value_type(int(data[::-1])) if self.value_type is Order else data[::-1].decode()


class Located(Format):
    """Text backwards, with a header that says where it is sent; may read headers."""

    def __init__(self, value_type: Any = str, *, reads_headers: bool = False) -> None:
        self.value_type, self.reads_headers = value_type, reads_headers

    def decoder(self, topic: str, part: Any, schemas: Any) -> Any:
        if self.reads_headers:
            return lambda data, headers: (data[::-1].decode(), headers)
        return lambda data: data[::-1].decode()

    def encoder(self, topic: str, part: Any, schemas: Any) -> Any:
        return lambda value: (value[::-1].encode(), (("at", f"{topic} {part}".encode()),))


def received(value: Any, key: Any, data: bytes | None = b"ab", key_data: bytes = b"8", *, loads: bool = False) -> Any:
    """Returns a message of a topic whose values and keys have these types or formats."""
    formats = format_of(value, BY_TYPE), format_of(key, BY_TYPE)
    decoders = decoders_of(*formats, topic="orders", schemas=NO_SCHEMAS, loads=loads)
    return make_batch(("orders", 0), [(0, data, key_data, [("h", b"1")], None)], decoders)[0]


@pytest.mark.parametrize("value_type", [Order | None, Any, int | str | None])
def test_a_type_with_none_takes_tombstones(value_type: Any) -> None:
    assert takes_none(value_type)
    assert decoder_for(value_type)(None) is None


@pytest.mark.parametrize("value_type", [Order, int, dict, list[int], str])
def test_any_other_type_refuses_them(value_type: Any) -> None:
    decode = decoder_for(value_type)
    with pytest.raises(TypeError):
        decode(None)


def test_values_are_read_as_their_type() -> None:
    for value_type in (Order, Order | None):
        assert decoder_for(value_type)(b'{"id": 7}') == Order(7)
    text = decoder_for(str | None)
    assert (text(b"a"), text(None)) == ("a", None)


def test_bytes_are_left_alone_with_and_without_tombstones() -> None:
    assert decoder_for(None) is decoder_for(bytes) is decoder_for(bytes | None) is None
    assert decoders_of(BYTES, BYTES, "orders", NO_SCHEMAS) is None
    assert reader_of(BYTES, "orders", "value", NO_SCHEMAS)(b"ab", []) == b"ab"


def test_a_default_of_user_code_decodes_what_is_neither_bytes_nor_text() -> None:
    assert decoder_for(Order, Reversed())(b"21") == Order(12)
    assert decoder_for(dict, Reversed())(b"ab") == "ba"
    assert (decoder_for(str, Reversed())(b"ab"), decoder_for(bytes, Reversed())) == ("ab", None)


def test_a_default_of_user_code_gets_no_tombstones() -> None:
    assert decoder_for(Order | None, Reversed())(None) is None
    strict = decoder_for(Order, Reversed())
    with pytest.raises(TypeError, match="tombstone"):
        strict(None)


def test_a_route_refuses_a_type_that_the_default_does_not_decode() -> None:
    class OrdersOnly(Reversed):
        def decoder(self, topic: str, part: Any, schemas: Any) -> Any:
            if self.value_type is not Order:
                raise TypeError(f"{self.value_type} is unknown; use Order")
            return super().decoder(topic, part, schemas)

    app = awoke.App("shop", format=OrdersOnly())
    app.on("orders", value=Order)(lambda message: None)
    with pytest.raises(awoke.ConfigError, match="use Order"):
        app.on("prices", value=dict)(lambda message: None)


def test_a_format_of_one_topic_is_no_default() -> None:
    for make in (awoke.App, awoke.Producer):
        with pytest.raises(awoke.ConfigError, match="give it to a topic or a route"):
            make("shop", format=awoke.avro(Order))


def test_messagepack_is_a_default_for_all_types() -> None:
    data = awoke.msgpack().encode(Order(7))
    assert data == msgspec.msgpack.encode(Order(7))
    assert decoder_for(Order, awoke.msgpack())(data) == Order(7)
    with pytest.raises(TypeError, match="Unknown"):
        decoder_for(Unknown, awoke.msgpack())
    with pytest.raises(awoke.EncodeError, match="MessagePack"):
        awoke.msgpack().encode(Unknown())


def test_what_json_can_not_hold_is_refused_as_a_result() -> None:
    with pytest.raises(TypeError, match="can't be written as JSON"):
        format_of(list[Unknown], BY_TYPE).check_writable()
    format_of(list[Unknown], Reversed()).check_writable()


def test_values_and_keys_have_decoders_of_their_own() -> None:
    message = received(Order, int, b'{"id":7}')
    assert (message.value, message.key) == (Order(7), 8)


@pytest.mark.parametrize(
    ("value", "key", "found"),
    [
        (Located(reads_headers=True), int, (("ba", [("h", b"1")]), 8)),
        (int, Located(reads_headers=True), (7, ("8", [("h", b"1")]))),
        (Located(reads_headers=True), Located(reads_headers=True), (("ba", [("h", b"1")]), ("8", [("h", b"1")]))),
    ],
)
def test_headers_reach_the_decoders_that_read_them(value: Any, key: Any, found: Any) -> None:
    message = received(value, key, b"7" if value is int else b"ab")
    assert (message.value, message.key) == found


def test_tombstones_are_none_where_the_type_of_a_format_takes_none() -> None:
    assert received(Located(str | None), None, None).value is None
    assert received(Located(str | None), None).value == "ba"
    with pytest.raises(awoke.DecodeError, match="tombstone"):
        received(Located(str), None, None).value  # noqa: B018


def test_the_type_of_a_format_is_the_type_of_its_values() -> None:
    assert type_of(Located(Order)) is type_of(Order) is Order


def test_values_without_a_format_are_the_producer_s_own_business() -> None:
    values: list[Any] = [None, Order, bytes]
    keys: list[Any] = [None, bytes, str, str | None]
    for part, kinds in (("value", values), ("key", keys)):
        for kind in kinds:
            assert encoder_of(kind, "orders", part, BY_TYPE, NO_SCHEMAS) is None  # type: ignore[arg-type]


def test_keys_of_a_type_are_encoded_and_text_stays_text() -> None:
    encode: Any = encoder_of(int, "orders", "key", BY_TYPE, NO_SCHEMAS)
    assert (encode(7), encode("seven")) == ((b"7", ()), (b"seven", ()))
    own: Any = encoder_of(int, "orders", "key", Reversed(), NO_SCHEMAS)
    assert own(12) == (b"21", ())


def test_an_error_of_a_format_names_the_topic_and_the_type_but_not_the_value() -> None:
    encode: Any = encoder_of(Located(), "orders", "key", BY_TYPE, NO_SCHEMAS)
    assert encode("ab") == (b"ba", (("at", b"orders key"),))
    with pytest.raises(awoke.EncodeError, match="a key of type int can't be written for topic 'orders'"):
        encode(5)


def test_an_error_quotes_no_value_and_keeps_none() -> None:
    class Careless(Format):
        def encode(self, value: Any) -> bytes:
            raise ValueError(f"{value!r} does not match on field note")

    encode: Any = encoder_of(Careless(), "orders", "value", BY_TYPE, NO_SCHEMAS)
    with pytest.raises(awoke.EncodeError, match="ValueError at field 'note'") as caught:
        encode("4111")
    assert "4111" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_a_decoder_needs_is_loaded_on_the_calling_thread() -> None:
    loaded: list[bytes] = []

    class Needing(Format):
        def decode(self, data: bytes) -> bytes:
            if data not in loaded:
                raise SchemaNeeded("a schema", lambda: loaded.append(data))
            return data

    assert [received(Needing(), None, b"a", loads=True).value for _ in range(2)] == [b"a", b"a"]
    assert loaded == [b"a"]
