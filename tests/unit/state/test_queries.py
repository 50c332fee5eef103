"""The wire of queries: the partition of a key, and rows in pages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import awoke
from awoke.errors import ConfigError, DecodeError, EncodeError
from awoke.payloads.formats.by_type import BY_TYPE
from awoke.payloads.registry.schemas import SchemaNeeded, Schemas
from awoke.payloads.topics import Topic
from awoke.state import queries
from awoke.state.row_formats import RowFormats

HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Those of Kafka's own tests (`UtilsTest.testMurmur2`)."""


def test_a_key_is_hashed_as_by_kafka() -> None:
    assert {key: queries.murmur2(key) for key in HASHES} == {key: value % 2**32 for key, value in HASHES.items()}
    assert queries.partition_of(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("partitions", [1, 3, 64])
def test_each_partition_has_a_key_for_requests(partitions: int) -> None:
    keys = [queries.key_in(number, partitions) for number in range(partitions)]
    assert [queries.partition_of(key, partitions) for key in keys] == list(range(partitions))


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ([], [0]),
        ([(b"k", b"v")] * 2_001, [1_000, 1_000, 1]),
        ([(b"k", b"v" * 200_000)] * 3, [2, 1]),
        ([(b"k", b"v" * 1_000_000)] * 2, [1, 1]),
    ],
    ids=["none", "many", "large", "larger than a page"],
)
def test_a_page_has_a_limit(rows: list[tuple[bytes, bytes]], sizes: list[int]) -> None:
    wanted = list(rows)
    pages = list(queries.pages(rows))
    assert [len(page) for page in pages] == sizes
    assert [row for page in pages for row in page] == wanted


def formats(key: Any = None, value: Any = None) -> RowFormats:
    return RowFormats("table 'totals'", Topic("shop.table.totals"), key, value, BY_TYPE, Schemas.none())


class Total(msgspec.Struct):
    """A row."""

    cents: int


def test_rows_are_written_and_read_by_their_types() -> None:
    found = formats(str, Total)
    assert (found.encode_key("k"), found.encode(Total(5))) == (b"k", b'{"cents":5}')
    assert (found.read_key(b"k"), found.read(b'{"cents":5}')) == ("k", Total(5))
    assert (formats().encode_key("k"), formats().read(b"v")) == (b"k", b"v")


def test_a_row_of_another_type_is_named_and_its_content_is_not() -> None:
    with pytest.raises(EncodeError, match=r"table 'totals': a key of type int is not one of its keys") as raised:
        formats(str).encode_key(4711)
    assert "4711" not in str(raised.value)
    with pytest.raises(EncodeError, match="its keys are bytes, not int"):
        formats().encode_key(5)
    with pytest.raises(DecodeError, match="a row of table 'totals' does not decode"):
        formats(value=Total).read(b"5")
    with pytest.raises(ConfigError, match="a row has none"):
        formats(value=awoke.cloudevents(Total))


def test_a_schema_that_is_not_loaded_is_no_row_that_does_not_decode() -> None:
    class Registered(awoke.Format):
        def encode(self, value: Any) -> bytes:
            return b""

        def decode(self, data: bytes) -> Any:
            raise SchemaNeeded("schema 5 is not loaded", lambda: None)

    with pytest.raises(SchemaNeeded):
        formats(value=Registered()).read(b"row")
