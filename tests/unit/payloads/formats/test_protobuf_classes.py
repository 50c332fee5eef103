"""Classes of protobuf messages: which they are, and what they write."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.formats.protobuf_classes import class_in, encode, is_message
from tests.support.formats import decoder_for
from tests.support.protobuf_classes import Amount, Line


class Failing:
    """A class as a library makes it, of which a field is missing."""

    @classmethod
    def FromString(cls, data: bytes) -> Failing:  # noqa: N802
        return cls()

    def SerializeToString(self) -> bytes:  # noqa: N802
        raise ValueError("field sku is missing")


def test_a_class_is_known_by_its_two_methods() -> None:
    assert is_message(Line)
    assert is_message(Failing)
    assert not is_message(dict)


def test_a_class_is_found_alone_and_beside_none() -> None:
    assert class_in(Line) is class_in(Line | None) is Line
    for kind in (Line | Amount, int, None, [1], list[Line]):
        assert class_in(kind) is None


def test_the_codec_of_a_type_reads_and_writes_messages() -> None:
    message = Line(sku="a")
    data = BY_TYPE.encode(message)
    decode: Any = decoder_for(Line)
    maybe: Any = decoder_for(Line | None)
    assert (data, decode(data), maybe(data), maybe(None)) == (b"\n\x01a", message, message, None)
    with pytest.raises(TypeError):
        decode(None)
    BY_TYPE.of(Line).check_writable()


def test_a_message_that_can_not_be_written_is_an_error() -> None:
    with pytest.raises(awoke.EncodeError, match="Failing can't be written: field sku is missing"):
        encode(Failing())
