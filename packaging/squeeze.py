"""Compresses a wheel anew, without loss: `squeeze.py WHEEL`. Runs in the environment of the tools: it has libdeflate.

Installers read the same method of compression. libdeflate finds shorter codes for the same bytes than zlib does.
"""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
VERSION = 20
"""Of the format: the first one with this compression."""
LEVEL = 12
"""The slowest of libdeflate's levels: two seconds for a wheel."""

Entry = tuple[zipfile.ZipInfo, bytes]
Deflate = Callable[[bytes], bytes]
"""Compresses bytes without a header (RFC 1951)."""


def squeeze(wheel: Path, deflate: Deflate) -> None:
    """Writes a wheel anew: the same files, times and permissions, in the same order. The result depends on them alone.

    Raises:
        ValueError: The new archive does not have the same contents.
    """
    entries = read(wheel)
    packed = pack(entries, deflate)
    new = wheel.with_name(wheel.name + ".new")
    new.write_bytes(packed)
    if [(info.filename, info.date_time, data) for info, data in read(new)] != [
        (info.filename, info.date_time, data) for info, data in entries
    ]:
        raise ValueError(f"{new} has other contents than {wheel}")
    new.replace(wheel)


def read(wheel: Path) -> list[Entry]:
    """Returns the entries of a wheel in their order."""
    with zipfile.ZipFile(wheel) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def pack(entries: Sequence[Entry], deflate: Deflate) -> bytes:
    """Returns an archive of these entries. What compression makes no smaller is stored as it is."""
    files, directory = bytearray(), bytearray()
    for info, data in entries:
        name, squeezed = info.filename.encode("ascii"), deflate(data)
        is_smaller = len(squeezed) < len(data)
        body, method = (squeezed, zipfile.ZIP_DEFLATED) if is_smaller else (data, zipfile.ZIP_STORED)
        shared = (VERSION, 0, method, *dos_time(info), zlib.crc32(data), len(body), len(data), len(name), 0)
        made_by = info.create_system << 8 | VERSION
        directory += CENTRAL.pack(b"PK\1\2", made_by, *shared, 0, 0, 0, info.external_attr, len(files)) + name
        files += LOCAL.pack(b"PK\3\4", *shared) + name + body
    end = END.pack(b"PK\5\6", 0, 0, len(entries), len(entries), len(directory), len(files), 0)
    return bytes(files + directory + end)


def dos_time(info: zipfile.ZipInfo) -> tuple[int, int]:
    """Returns the time of an entry as archives write it: the time of day in units of two seconds, and the date."""
    year, month, day, hour, minute, second = info.date_time
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day


def main(arguments: Sequence[str]) -> None:
    """Runs the command line."""
    import deflate

    for wheel in arguments:
        squeeze(Path(wheel), lambda data: bytes(deflate.deflate_compress(data, LEVEL)))


if __name__ == "__main__":
    main(sys.argv[1:])
