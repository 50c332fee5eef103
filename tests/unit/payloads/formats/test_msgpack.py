"""MessagePack: there and back, wrong types, and a route with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke.payloads.registry.schema import Part
from awoke.payloads.registry.schemas import Schemas

VALUES: tuple[str, Part] = ("orders", "value")


class Order(msgspec.Struct):
    id: int


class Unknown:
    """A class that msgspec does not know."""


def test_values_go_there_and_back() -> None:
    form = awoke.msgpack(Order)
    data, headers = form.encoder(*VALUES, Schemas.none())(Order(7))
    assert (data, headers) == (b"\x81\xa2id\x07", ())
    assert form.decoder(*VALUES, Schemas.none())(data) == Order(7)
    anything = awoke.msgpack()
    assert anything.decoder(*VALUES, Schemas.none())(data) == {"id": 7}


def test_other_bytes_do_not_decode() -> None:
    decode: Any = awoke.msgpack(Order).decoder(*VALUES, Schemas.none())
    for data in (b"", b"{}", b"\x81\xa2id\xa1x"):
        with pytest.raises(msgspec.MsgspecError):
            decode(data)


def test_a_type_that_msgspec_does_not_know_is_one_clear_error() -> None:
    with pytest.raises(awoke.ConfigError, match=r"awoke\.msgpack"):
        awoke.msgpack(Unknown)


def test_a_route_takes_a_format_and_compares_its_type_with_the_annotation() -> None:
    app = awoke.App("app")

    @app.on("orders", value=awoke.msgpack(Order))
    def fits(message: awoke.Message[Order]) -> None: ...

    with pytest.raises(awoke.ConfigError, match="contradicts the annotation"):

        @app.on("others", value=awoke.msgpack(Order))
        def contradicts(message: awoke.Message[int]) -> None: ...
