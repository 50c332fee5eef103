"""A wheel that is rewritten: its files, the list that installers check, the same bytes each time."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import pytest

import wheel_file

RECORD = "awoke-1.0.dist-info/RECORD"
EPOCH = 1_700_000_000


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A small wheel with an extension."""
    file = tmp_path / "awoke-1.0-cp311-abi3-linux.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("awoke/__init__.py", b"")
        archive.writestr("awoke/_native.abi3.so", b"with symbols")
        archive.writestr("awoke-1.0.dist-info/METADATA", b"Name: awoke\n\nText\n")
        archive.writestr(RECORD, b"old,,\n")
    return file


def test_changed_and_added_files_stand_in_the_new_wheel(wheel: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / wheel.name
    new.parent.mkdir()
    wheel_file.rewrite(wheel, new, {"awoke/_native.abi3.so": b"without", "awoke/NOTICE": b"thanks"}, EPOCH)
    contents = wheel_file.read(new)
    assert contents["awoke/_native.abi3.so"] == b"without"
    assert contents["awoke/NOTICE"] == b"thanks"
    assert contents["awoke/__init__.py"] == b""


def test_the_list_names_each_file_with_hash_and_size_and_stands_last(wheel: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / wheel.name
    new.parent.mkdir()
    wheel_file.rewrite(wheel, new, {}, EPOCH)
    contents = wheel_file.read(new)
    rows = list(csv.reader(io.StringIO(contents[RECORD].decode())))
    assert [row[0] for row in rows] == list(contents)
    assert rows[-1] == [RECORD, "", ""]
    # The hash of no bytes at all, as PEP 376 writes it.
    assert rows[0] == ["awoke/__init__.py", "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "0"]


def test_the_same_contents_make_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        wheel_file.rewrite(wheel, tmp_path / name / wheel.name, {"awoke/NOTICE": b"thanks"}, EPOCH)
        written.append((tmp_path / name / wheel.name).read_bytes())
    assert written[0] == written[1]


def test_an_extension_is_found_under_each_of_its_names() -> None:
    for name in ("awoke/_native.abi3.so", "awoke/_native.cpython-314t-x86_64-linux-gnu.so"):
        assert wheel_file.extension_in({"awoke/__init__.py": b"", name: b""}) == name
