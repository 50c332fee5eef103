"""Messages are encoded as their producers encode them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke import testing
from awoke.testing.memory.encoding import parts_for
from awoke.testing.memory.process import route_of


class Order(msgspec.Struct):
    id: int


def parts(topic: Any, messages: list[Any], **options: Any) -> dict[int, Any]:
    app = awoke.App("shop")
    app.on(topic, **options)(lambda message: None)
    return parts_for(app, route_of(app, str(topic)), messages)


def test_values_are_encoded_by_the_format_of_the_topic() -> None:
    topic = awoke.Topic("orders", value=awoke.msgpack(Order), key=int)
    found = parts(topic, [testing.message(Order(1), key=7), testing.message(b"raw", key=b"k")])
    ((first, second),) = found.values()
    assert (msgspec.msgpack.decode(first.value), first.key) == ({"id": 1}, b"7")
    assert (second.value, second.key) == (b"raw", b"k")


def test_values_are_encoded_by_the_codec_of_the_app_else() -> None:
    ((only,),) = parts("orders", [testing.message(Order(1), key={"a": 1}, headers={"h": "x"})]).values()
    assert (only.value, only.headers) == (b'{"id":1}', [("h", b"x")])


def test_messages_are_by_partition_with_ascending_offsets() -> None:
    given = [testing.message(b"", partition=1), testing.message(b"", offset=9), b"", testing.message(b"", partition=1)]
    found = parts("orders", given)
    assert {number: [each.offset for each in of] for number, of in found.items()} == {1: [0, 1], 0: [9, 10]}


def test_a_value_that_cant_be_encoded_is_refused() -> None:
    with pytest.raises(awoke.EncodeError):
        parts("orders", [object()])
