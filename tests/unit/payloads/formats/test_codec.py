"""Codecs: which values a type reads, tombstones, and codecs of user code."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads.formats.codec import BY_TYPE, Codec, Decoder, decoder_for, takes_none


class Order(msgspec.Struct):
    id: int


@pytest.mark.parametrize("value_type", [Order | None, Any, int | str | None])
def test_a_type_with_none_takes_tombstones(value_type: Any) -> None:
    assert takes_none(value_type)
    decode: Any = decoder_for(value_type)
    assert decode(None) is None


@pytest.mark.parametrize("value_type", [Order, int, dict, list[int], str])
def test_any_other_type_refuses_them(value_type: Any) -> None:
    decode: Any = decoder_for(value_type)
    with pytest.raises(TypeError):
        decode(None)


def test_values_are_read_as_before() -> None:
    for value_type in (Order, Order | None):
        decode: Any = decoder_for(value_type)
        assert decode(b'{"id": 7}') == Order(7)
    text: Any = decoder_for(str | None)
    assert (text(b"a"), text(None)) == ("a", None)


def test_bytes_are_left_alone_with_and_without_tombstones() -> None:
    assert decoder_for(None) is decoder_for(bytes) is decoder_for(bytes | None) is None


class Unknown:
    """A class that msgspec does not know."""


class Reversed(Codec):
    """Text backwards: a codec of user code."""

    def encode(self, value: Any) -> bytes:
        return str(value)[::-1].encode()

    def decoder(self, value_type: Any) -> Decoder:
        if value_type not in (Order, Order | None):
            raise TypeError(f"{value_type} is unknown; use Order")
        return lambda data: Order(int(data[::-1]))


def test_a_codec_of_user_code_decodes_what_is_neither_bytes_nor_text() -> None:
    decode: Any = decoder_for(Order, Reversed())
    assert decode(b"21") == Order(12)
    text: Any = decoder_for(str, Reversed())
    assert (text(b"ab"), decoder_for(bytes, Reversed())) == ("ab", None)


def test_a_codec_of_user_code_gets_no_tombstones() -> None:
    decode: Any = decoder_for(Order | None, Reversed())
    assert (decode(None), decode(b"21")) == (None, Order(12))
    strict: Any = decoder_for(Order, Reversed())
    with pytest.raises(TypeError, match="tombstone"):
        strict(None)


def test_a_route_refuses_a_type_that_its_codec_does_not_decode() -> None:
    app = awoke.App("shop", codec=Reversed())
    app.on("orders", value=Order)(lambda message: None)
    with pytest.raises(awoke.ConfigError, match="use Order"):
        app.on("prices", value=dict)(lambda message: None)


def test_what_json_can_not_hold_is_refused_as_a_result() -> None:
    with pytest.raises(TypeError, match="can't be written as JSON"):
        BY_TYPE.check_encodable(list[Unknown])
    Reversed().check_encodable(list[Unknown])
