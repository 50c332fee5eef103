"""Rewrites a wheel: takes the debug symbols out of its extension, adds what ships with it, and lists its files anew."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path


def rewrite(wheel: Path, destination: Path, changes: Mapping[str, bytes], epoch: int) -> None:
    """Writes a wheel in which `changes` stand for the files of these names, or beside them.

    The result depends on the contents alone: the time of each file is `epoch`, in seconds.
    """
    contents = {name: data for name, data in read(wheel).items() if not name.endswith(".dist-info/RECORD")}
    contents.update(changes)
    record = f"{dist_info(wheel)}/RECORD"
    contents[record] = listing(contents, record)
    with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=9)  # An entry has a level of its own.


def read(wheel: Path) -> dict[str, bytes]:
    """Returns the files of a wheel, by name and in their order."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def dist_info(wheel: Path) -> str:
    """Returns the name of the folder with the wheel's metadata."""
    name, version = wheel.name.split("-")[:2]
    return f"{name}-{version}.dist-info"


def extension_in(contents: Mapping[str, bytes]) -> str:
    """Returns the name of the extension module among the files of a wheel."""
    (found,) = (name for name in contents if re.fullmatch(r"awoke/_native.*\.so", name))
    return found


def listing(contents: Mapping[str, bytes], record: str) -> bytes:
    """Returns the list of files that installers check: name, hash and size of each, and the list itself."""
    lines = [f"{name},sha256={digest(data)},{len(data)}" for name, data in contents.items()]
    return "\n".join([*lines, f"{record},,", ""]).encode()


def digest(data: bytes) -> str:
    """Returns a hash as the lists of wheels write it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def split(library: Path, symbols: Path, objcopy: str) -> None:
    """Moves the debug symbols of a library into a file of their own, and leaves its name in the library.

    Debuggers find the file beside the library, or by the library's build id.
    """
    symbols.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([objcopy, "--only-keep-debug", "--compress-debug-sections", library, symbols], check=True)
    subprocess.run([objcopy, "--strip-all", f"--add-gnu-debuglink={symbols}", library], check=True)
    symbols.chmod(0o644)
