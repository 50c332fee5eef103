"""The wire of queries: how a process asks the owner of a row for it. For other languages: `docs/internals/queries.md`.

Each table is a service of awoke's RPC, named as its changelog. Its topic of requests has as many partitions as the
changelog, and partition *n* of it is read by the process that has partition *n* of the table: a request under the key
of a row comes to the owner of the row. Keys and values travel as the bytes that they are in the changelog.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

GET, SCAN = "get", "scan"
"""The methods of the service of a table."""

KEYS_MAX = 500
"""The most keys of one request."""
PAGE_ROWS_MAX = 1_000
PAGE_BYTES_MAX = 256 * 1024
"""A reply has this many rows and bytes, and may be larger by its last row."""


class RowLookup(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The argument of `get`."""

    keys: list[bytes]
    partition: int | None = None
    """The partition that the keys are in; None: that of the request."""
    stale: bool = False
    """True: what is there while the partition is being restored is wanted, too."""


class RowScan(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The argument of `scan`."""

    partition: int
    stale: bool = False


class RowOrigin(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Where rows come from."""

    process: str
    """The process that answered: host and process id, and the node's number in a swarm."""
    partition: int
    offset: int | None
    """The offset that was committed for the partition of the route's topic; None before the first commit."""
    is_stale: bool
    """True if the partition is being restored: rows may be missing or old."""


class FoundValues(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The result of `get`."""

    origin: RowOrigin
    values: list[bytes | None]
    """The values of the first keys, at least one, in order; a reply that would be too large has fewer."""


class RowPage(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One result of `scan`."""

    origin: RowOrigin
    scan: bytes
    """The same for all pages of one execution: a scan that another process has begun again has others."""
    number: int
    """From 0."""
    rows: list[tuple[bytes, bytes]]


def service_of(app: str, table: str) -> str:
    """Returns the name of the service that answers for a table; it is the name of the table's changelog, too."""
    return f"{app}.table.{table}"


def pages(rows: list[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yields rows in pages of a limited size, in order, and takes them out of the list: at least one page."""
    rows.reverse()
    while True:
        page, size = list[tuple[bytes, bytes]](), 0
        while rows and len(page) < PAGE_ROWS_MAX and size < PAGE_BYTES_MAX:
            row = rows.pop()
            size += len(row[0]) + len(row[1])
            page.append(row)
        yield page
        if not rows:
            return


def partition_of(key: bytes, partitions: int) -> int:
    """Returns the partition of a key, as Java's clients and awoke's choose it: murmur2."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Returns Kafka's hash of a key, without a sign."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    length = len(data)
    found = 0x9747B28C ^ length
    whole = length - length % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        found = (found * factor & mask) ^ word
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * factor & mask
    found = (found ^ found >> 13) * factor & mask
    return found ^ found >> 15


def key_in(partition: int, partitions: int) -> bytes:
    """Returns a key that comes to a partition: for requests that are about no row of their own."""
    number = 0
    while partition_of(key := b"%d" % number, partitions) != partition:
        number += 1
    return key
