"""The sources that a wheel is made from, and the mark that tells a wheel made from them: a hash in its `.dist-info`.

The build backend imports it too, so it needs nothing but Python.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
MARK = "sources.sha256"
ROOT_FILES = ("Cargo.lock", "Cargo.toml", "pyproject.toml")
FOLDERS = ("crates", "python/awoke")
MADE = {".pyc", ".so"}
"""Suffixes of files in these folders that are built: bytecode, the extension."""
PAGES = Path("python/awoke/pages")
FETCHED = Path("python/awoke/console/web/static/vendor")


def files(root: Path = REPOSITORY) -> Iterator[Path]:
    """Yields the files that decide what is in a wheel, relative to `root`. The same with and without git."""
    yield from map(Path, ROOT_FILES)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            relative = file.relative_to(root)
            if file.is_file() and file.suffix not in MADE and not {PAGES, FETCHED} & set(relative.parents):
                yield relative


def digest(root: Path = REPOSITORY) -> str:
    """Returns a hash of the names and contents of the sources."""
    found = hashlib.sha256()
    for file in files(root):
        content = (root / file).read_bytes()
        found.update(f"{file.as_posix()}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()


def mark_of(wheel: Path) -> str | None:
    """Returns the hash of the sources that a wheel was made from; None if it does not say, or cannot be read."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(f".dist-info/{MARK}"))
            return archive.read(name).decode()
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
