"""A wheel that is compressed anew: the same files, times and permissions, and the same bytes each time."""

from __future__ import annotations

import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

import squeeze

NOISE = bytes(zlib.crc32(b"%d" % number) % 256 for number in range(300))
CONTENTS = {"awoke/__init__.py": b"", "awoke/_native.abi3.so": b"code " * 2_000, "awoke/picture.png": NOISE}
WRITTEN_AT = (2026, 11, 27, 9, 30, 58)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with an executable, compressed badly."""
    file = tmp_path / "awoke-1.0-cp311-abi3-linux.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in CONTENTS.items():
            entry = zipfile.ZipInfo(name, WRITTEN_AT)
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, data)
    return file


def zlib_raw(data: bytes) -> bytes:
    """Compresses as libdeflate does, with the library that each Python has."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


def test_files_times_and_permissions_stay(wheel: Path) -> None:
    before = wheel.stat().st_size
    squeeze.squeeze(wheel, zlib_raw)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == CONTENTS
        assert {each.date_time for each in archive.infolist()} == {WRITTEN_AT}
        modes = {each.filename: each.external_attr >> 16 for each in archive.infolist()}
    assert modes == {name: 0o100755 if name.endswith(".so") else 0o100644 for name in CONTENTS}
    assert wheel.stat().st_size < before / 2
    assert list(wheel.parent.iterdir()) == [wheel]


def test_what_is_not_smaller_is_stored(wheel: Path) -> None:
    squeeze.squeeze(wheel, zlib_raw)
    with zipfile.ZipFile(wheel) as archive:
        methods = {each.filename: each.compress_type for each in archive.infolist()}
    assert methods == {
        "awoke/__init__.py": zipfile.ZIP_STORED,
        "awoke/_native.abi3.so": zipfile.ZIP_DEFLATED,
        "awoke/picture.png": zipfile.ZIP_STORED,
    }


def test_the_same_contents_make_the_same_bytes(wheel: Path) -> None:
    squeeze.squeeze(wheel, zlib_raw)
    once = wheel.read_bytes()
    squeeze.squeeze(wheel, zlib_raw)
    assert wheel.read_bytes() == once


def test_other_programs_can_read_it(wheel: Path) -> None:
    unzip = subprocess.run(["sh", "-c", "command -v unzip"], capture_output=True, text=True, check=False)
    if unzip.returncode != 0:
        pytest.skip("there is no unzip")
    squeeze.squeeze(wheel, zlib_raw)
    done = subprocess.run(["unzip", "-t", wheel], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_compressor_that_loses_bytes_is_noticed_and_the_wheel_stays(wheel: Path) -> None:
    before = wheel.read_bytes()
    with pytest.raises(zipfile.BadZipFile):
        squeeze.squeeze(wheel, lambda data: zlib_raw(data[:-1]))
    assert wheel.read_bytes() == before
