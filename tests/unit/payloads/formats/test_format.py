"""Formats at their places: decoders of values and keys, headers, tombstones, and what keys are encoded as."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads.formats import Encoded, Place
from awoke.payloads.formats.format import Coding, Decoding, Format, decoding_of, encoder_of, type_of
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas


class Order(msgspec.Struct):
    id: int


class Reversed(Format):
    """Text backwards; the header `by` says how often."""

    needs_registry = False

    def __init__(self, value_type: Any = str, *, reads_headers: bool = False) -> None:
        self.value_type, self.reads_headers = value_type, reads_headers

    def decoder(self, place: Place, schemas: Schemas) -> Any:
        if self.reads_headers:
            return lambda data, headers: (data[::-1].decode(), headers)
        return lambda data: data[::-1].decode()

    def encoder(self, place: Place, schemas: Schemas) -> Any:
        return lambda value: Encoded(value[::-1].encode(), (("at", f"{place.topic} {place.part}".encode()),))


def test_bytes_need_no_decoder() -> None:
    assert decoding_of(None, bytes, "orders") == Decoding()
    assert decoding_of(None, None, "orders").native() is None
    assert decoding_of(Order, int, "orders").native() is not None


def test_values_and_keys_have_decoders_of_their_own() -> None:
    value, key, with_headers = decoding_of(Order, int, "orders")
    assert value is not None and key is not None  # noqa: PT018
    assert (value(b'{"id":7}'), key(b"8"), with_headers) == (Order(7), 8, False)


@pytest.mark.parametrize(
    ("value", "key", "found"),
    [
        (Reversed(reads_headers=True), int, (("ba", ["h"]), 8)),
        (Order, Reversed(reads_headers=True), (Order(7), ("8", ["h"]))),
        (Reversed(reads_headers=True), Reversed(reads_headers=True), (("ba", ["h"]), ("8", ["h"]))),
    ],
)
def test_if_one_of_them_reads_headers_both_are_called_with_them(value: Any, key: Any, found: Any) -> None:
    decoding: Any = decoding_of(value, key, "orders")
    data = b'{"id":7}' if value is Order else b"ab"
    assert decoding.with_headers
    assert (decoding.value(data, ["h"]), decoding.key(b"8", ["h"])) == found


def test_tombstones_are_none_where_the_type_takes_none() -> None:
    maybe: Any = decoding_of(Reversed(str | None), None, "orders").value
    never: Any = decoding_of(Reversed(str), None, "orders").value
    assert (maybe(None), maybe(b"ab")) == (None, "ba")
    with pytest.raises(TypeError, match="tombstone"):
        never(None)


def test_the_type_of_a_format_is_the_type_of_its_values() -> None:
    assert type_of(Reversed(Order)) is type_of(Order) is Order


def test_values_without_a_format_are_the_producer_s_own_business() -> None:
    values: list[Any] = [None, Order, bytes]
    keys: list[Any] = [None, bytes, str, str | None]
    for part, forms in (("value", values), ("key", keys)):
        for form in forms:
            assert encoder_of(form, Place("orders", part), Coding()) is None  # type: ignore[arg-type]


def test_keys_of_a_type_are_encoded_and_text_stays_text() -> None:
    encode: Any = encoder_of(int, Place("orders", "key"), Coding())
    assert (encode(7), encode("seven")) == (Encoded(b"7"), Encoded(b"seven"))


def test_an_error_of_a_format_names_the_topic_and_the_type_but_not_the_value() -> None:
    encode: Any = encoder_of(Reversed(), Place("orders", "key"), Coding())
    assert encode("ab") == Encoded(b"ba", (("at", b"orders key"),))
    with pytest.raises(awoke.EncodeError, match="a key of type int can't be written for topic 'orders'"):
        encode(5)


def test_an_error_quotes_no_value_and_keeps_none() -> None:
    class Careless(Reversed):
        def encoder(self, place: Place, schemas: Schemas) -> Any:
            def encode(value: Any) -> Encoded:
                raise ValueError(f"{value!r} does not match on field note")

            return encode

    encode: Any = encoder_of(Careless(), Place("orders", "value"), Coding())
    with pytest.raises(awoke.EncodeError, match="ValueError at field 'note'") as caught:
        encode("4111")
    assert "4111" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_a_decoder_needs_is_loaded_on_the_calling_thread() -> None:
    loaded: list[bytes] = []

    def decode(data: bytes) -> bytes:
        if data not in loaded:
            raise SchemaNeeded("a schema", lambda: loaded.append(data))
        return data

    value, key, _ = Decoding(decode, None).loading()
    assert key is None
    assert value is not None
    assert (value(b"a"), value(b"a"), loaded) == (b"a", b"a", [b"a"])
