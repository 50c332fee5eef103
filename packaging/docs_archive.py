"""Packs the documentation into one file beside the package, from where `awoke docs` and wheels take it."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

TEXT = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20, "lc": 4, "pb": 0}
"""The compression that suits text: pages are alike far from each other, and their bytes have no alignment."""


def pack(site: Path, archive: Path) -> None:
    """Writes the files of a site into an archive. Its bytes depend on the names and contents of the files alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as opened:
        for file in sorted(each for each in site.rglob("*") if each.is_file()):
            member = tarfile.TarInfo(file.relative_to(site).as_posix())
            data = file.read_bytes()
            member.size, member.mode = len(data), 0o644
            opened.addfile(member, io.BytesIO(data))
    archive.write_bytes(lzma.compress(packed.getvalue(), filters=[TEXT]))
