"""The bytes that name a schema: before the payload, or in a header, as Confluent's serializers write them.

Source: Confluent's documentation of the wire format, and of schema ids in headers.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Literal, NamedTuple

Wire = Literal["prefix", "header"]
"""The place of the schema's id."""

MAGIC = 0
GUID_MAGIC = 1
PREFIX_BYTES = 5
GUID_BYTES = 17
HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}


class Framed(NamedTuple):
    """A payload, and the schema that it was written with."""

    schema: int | str
    """The schema's id, or its GUID."""
    payload: bytes
    """For protobuf by prefix, the indexes of its message come first."""
    indexes: bytes | None = None
    """For protobuf by header, the indexes of its message."""


def split(data: bytes, headers: Sequence[tuple[str, bytes | None]], header: str) -> Framed:
    """Returns the schema of a payload: by the header of this name where there is one, or else by the prefix.

    Raises:
        ValueError: There is neither.
    """
    for name, value in reversed(headers):
        if name == header and value is not None:
            return _by_header(data, value, header)
    if len(data) < PREFIX_BYTES or data[0] != MAGIC:
        begin = data[:PREFIX_BYTES].hex(" ")
        text = f"the bytes begin with {begin or 'nothing'}, not with 00 and the id of a schema"
        raise ValueError(f"{text}, and there is no header {header!r}")
    return Framed(int.from_bytes(data[1:PREFIX_BYTES]), data[PREFIX_BYTES:])


def prefix(number: int) -> bytes:
    """Returns the bytes before a payload that name its schema by id."""
    return b"\0" + number.to_bytes(4)


def header_value(guid: str) -> bytes:
    """Returns the value of the header that names a schema by its GUID."""
    return bytes([GUID_MAGIC]) + uuid.UUID(guid).bytes


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Returns the place of a message in its protobuf schema: of each level the index, from outside; `00` for the first.

    Each number is a zigzag varint, the count comes first.
    """
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def read_indexes(data: bytes) -> tuple[list[int], int]:
    """Returns the indexes at the beginning of these bytes, and where the payload begins.

    Raises:
        ValueError: The bytes end within them, or a number makes no sense.
    """
    count, at = _read_varint(data, 0)
    if count == 0:
        return [0], at
    if not 0 < count <= len(data):
        raise ValueError(f"the message's place in its schema has {count} levels")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        indexes.append(index)
    return indexes, at


def _by_header(data: bytes, value: bytes, header: str) -> Framed:
    if value[:1] == bytes([GUID_MAGIC]) and len(value) >= GUID_BYTES:
        guid = str(uuid.UUID(bytes=value[1:GUID_BYTES]))
        return Framed(guid, data, value[GUID_BYTES:])
    if value[:1] == bytes([MAGIC]) and len(value) >= PREFIX_BYTES:
        return Framed(int.from_bytes(value[1:PREFIX_BYTES]), data, value[PREFIX_BYTES:])
    raise ValueError(f"header {header!r} names no schema: its value begins with {value[:PREFIX_BYTES].hex(' ')}")


def _varint(number: int) -> bytes:
    left = number << 1 if number >= 0 else ((-number) << 1) - 1
    found = bytearray()
    while left > 0x7F:
        found.append((left & 0x7F) | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= len(data) or shift > 35:
            raise ValueError("the bytes end within the message's place in its schema")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
        shift += 7
