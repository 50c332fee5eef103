"""Which values a route's type reads, and whether it takes tombstones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from awoke.serde import decoder_for, takes_none


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
