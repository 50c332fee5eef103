"""awoke's own JSON: names of topics are written, and no bytes raise when they are read."""

from __future__ import annotations

import msgspec
import pytest

import awoke
from awoke.text.records import Moment, Number, decode, encode


class Record(msgspec.Struct):
    topic: str
    at_ms: Moment = 0
    rate: Number = 0.0


def test_the_name_of_a_topic_is_written_as_any_other() -> None:
    topic = awoke.Topic("orders", value=awoke.msgpack(dict))
    assert encode([Record(topic), {topic: [topic]}]) == encode([Record("orders"), {"orders": ["orders"]}])
    with pytest.raises(NotImplementedError):
        encode(object())


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\xff",
        b"null",
        b"[]",
        b'{"topic":"\xff"}',
        b'{"topic":"a","x":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"topic":"a","at_ms":1e999}',
        b'{"topic":"a","at_ms":-1}',
        b'{"topic":"a","at_ms":1' + b"0" * 5_000 + b"}",
        b'{"topic":"a","rate":1e308}',
        b'{"topic":"a","rate":NaN}',
    ],
)
def test_what_is_no_record_is_none(data: bytes | None) -> None:
    assert decode(data, Record) is None


def test_a_record_is_read() -> None:
    assert decode(b'{"topic":"a","at_ms":5,"more":1}', Record) == Record("a", 5)
