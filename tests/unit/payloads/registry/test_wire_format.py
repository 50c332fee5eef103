"""The bytes that name a schema, fixed as hexadecimal numbers."""

from __future__ import annotations

import pytest

from awoke.payloads.registry.wire_format import (
    Framed,
    header_value,
    prefix,
    read_indexes,
    split,
    write_indexes,
)

GUID = "01020304-0506-0708-090a-0b0c0d0e0f10"


def test_a_prefix_is_a_zero_and_the_id() -> None:
    assert prefix(258).hex() == "0000000102"
    assert split(bytes.fromhex("00000001026162"), [], "h") == Framed(258, b"ab")


def test_a_header_comes_before_a_prefix() -> None:
    value = bytes.fromhex("01 0102030405060708090a0b0c0d0e0f10")
    assert header_value(GUID) == value
    data = prefix(1) + b"a"
    assert split(data, [("other", None), ("h", value)], "h") == Framed(GUID, data, b"")
    assert split(data, [("h", value + b"\2\0")], "h") == Framed(GUID, data, b"\2\0")
    assert split(b"a", [("h", prefix(7))], "h") == Framed(7, b"a", b"")


@pytest.mark.parametrize("value", [b"", b"\1", b"\1" * 16, b"\2" * 17, b"\0\0"])
def test_a_header_that_names_no_schema_is_an_error(value: bytes) -> None:
    with pytest.raises(ValueError, match="names no schema"):
        split(prefix(1), [("h", value)], "h")


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0", b'{"id": 1}'])
def test_bytes_without_a_schema_are_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="not with 00"):
        split(data, [], "h")


@pytest.mark.parametrize(
    ("indexes", "data"),
    [([0], "00"), ([1], "0202"), ([1, 0], "040200"), ([0, 2], "040004"), ([100], "02c801"), ([0, 0], "040000")],
)
def test_indexes_are_zigzag_numbers_with_their_count(indexes: list[int], data: str) -> None:
    assert write_indexes(indexes).hex() == data
    assert read_indexes(bytes.fromhex(data) + b"rest") == (indexes, len(data) // 2)


@pytest.mark.parametrize("data", [b"", b"\2", b"\x80", b"\xff" * 9, b"\1"])
def test_indexes_that_make_no_sense_are_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="place in its schema"):
        read_indexes(data)
