"""Refuses a wheel that must not be published: `check_wheel.py WHEEL...`.

Checks the tag, the size, that all files are in it, and that its binary runs where the tag says: it needs no other
shared library and no newer C library, and names no folder of the machine that built it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
ELF = b"\x7fELF"
SIZE_MAX = 6_000_000
TAG = re.compile(
    r"-cp3\d+-(?:abi3|cp3\d+t?)-"
    r"(?:manylinux_2_(?P<glibc>\d+)|manylinux2014|musllinux_1_\d+|macosx_\d+_\d+)_(?P<processor>x86_64|aarch64|arm64)"
)
GLIBC_MAX = 28
"""Wheels do with version 2.28 of the C library of GNU, that of RHEL 8."""
GLIBC_OF_2014 = 17
NATIVE = re.compile(r"awoke/_native\.[\w.-]*so")
NEEDED_FILES = {
    "awoke/__init__.py": "",
    "awoke/__init__.pyi": "",  # The package reads its own stub when it is imported.
    "awoke/_native.pyi": "",
    "awoke/py.typed": "",
    "awoke/pages/llms.txt": ": run `make docs` before the build",
}
"""Files of the package, and for some of them how they are made."""
LICENSES = ("LICENSE", "LICENSE.third-party.txt")
LIBRARIES = ("librdkafka", "LZ4", "OpenSSL", "zlib", "zstd")
ALLOWED = re.compile(r"(?:libc|libm|libdl|libpthread|librt|libgcc_s)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+|libc\.musl-.+")
HOMES = re.compile(rb"(?<![\w.-])/(?:root|home|Users|__w)/[\w./@+-]+|/\.cargo/registry/[\w./@+-]+")
"""Folders that machines which build have, and those which run the wheel do not."""
MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64", "arm64": "AArch64"}
SHOWN_MAX = 3


def faults(wheel: Path) -> Iterator[str]:
    """Yields the reasons why a wheel must not be published."""
    tag = TAG.search(wheel.name)
    if tag is None:
        yield f"its tag names no supported Python and platform: {wheel.name}"
    if (size := wheel.stat().st_size) > SIZE_MAX:
        yield f"it has {size / 1e6:.2f} MB; the most are {SIZE_MAX / 1e6:.0f}"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        yield from faults_of_names(names)
        yield from faults_of_bills(archive)
        native = [name for name in names if NATIVE.fullmatch(name)]
        if len(native) != 1:
            yield f"it must have one native module, and has {native or 'none'}"
        elif tag is not None:
            yield from faults_of_binary(archive.read(native[0]), tag)


def faults_of_symbols(symbols: Path, objcopy: str) -> Iterator[str]:
    """Yields what is wrong with the debug symbols of a wheel: its build id, which is in the wheel, depends on them."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / symbols.name
        subprocess.run([objcopy, "--decompress-debug-sections", symbols, plain], check=True)
        if folders := build_folders(plain.read_bytes()):
            yield f"its debug symbols name folders of the machine that built it: {', '.join(folders)}"


def faults_of_names(names: Sequence[str]) -> Iterator[str]:
    """Yields the files that are missing in a wheel."""
    yield from (f"{name} is missing{how}" for name, how in NEEDED_FILES.items() if name not in names)
    for name in LICENSES:
        if not any(re.fullmatch(rf"awoke-[^/]+\.dist-info/licenses/{re.escape(name)}", each) for each in names):
            yield f"licenses/{name} is missing: run packaging/notices.py before the build"


def faults_of_bills(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yields what is wrong with the bill of materials in a wheel."""
    bills = [name for name in archive.namelist() if re.search(r"\.dist-info/sboms/.+\.json$", name)]
    parts = {each["name"] for name in bills for each in json.loads(archive.read(name))["components"]}
    missing = [name for name in LIBRARIES if name not in parts]
    if missing:
        yield f"no bill of materials names {', '.join(missing)}: run packaging/sbom.py before the build"
    for name in bills:
        if folders := build_folders(archive.read(name)):
            yield f"{name} names folders of the machine that built it: {', '.join(folders)}"


def build_folders(content: bytes) -> list[str]:
    """Returns some folders in a file that only the machine that built it has: this one, or any with homes of users."""
    here = {str(folder) for folder in (REPOSITORY, Path.home()) if f"{folder}/".encode() in content}
    return sorted(here | {each.decode() for each in HOMES.findall(content)})[:SHOWN_MAX]


def faults_of_binary(content: bytes, tag: re.Match[str]) -> Iterator[str]:
    """Yields what is wrong with the native module of a wheel with this tag."""
    if folders := build_folders(content):
        yield f"its native module names folders of the machine that built it: {', '.join(folders)}"
    if not content.startswith(ELF):
        return  # macOS: the job that builds it there looks at it with the system's own tool.
    said = read_elf(content)
    if MACHINES[tag["processor"]] not in said:
        yield f"its native module is not for {tag['processor']}"
    strangers = [name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", said) if not ALLOWED.fullmatch(name)]
    if strangers:
        yield f"its native module needs other shared libraries: {', '.join(strangers)}"
    if re.search(r"\((?:RPATH|RUNPATH)\)", said):
        yield "its native module looks for libraries in folders of its own (RPATH)"
    if "manylinux" in tag[0]:
        yield from faults_of_glibc(said, int(tag["glibc"] or GLIBC_OF_2014))


def faults_of_glibc(said: str, promised: int) -> Iterator[str]:
    """Yields what is wrong if a wheel's tag promises to do with version 2.`promised` of the C library of GNU."""
    if promised > GLIBC_MAX:
        yield f"its tag shuts out systems with glibc 2.{GLIBC_MAX}"
    newest = max(map(int, re.findall(r"\bGLIBC_2\.(\d+)", said)), default=0)
    if newest > promised:
        yield f"its native module needs glibc 2.{newest}; its tag promises 2.{promised}"


def read_elf(content: bytes) -> str:
    """Returns header, dynamic section and needed versions of symbols of a shared library, as `readelf` shows them."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(content)
        file.flush()
        command = ["readelf", "--wide", "--file-header", "--dynamic", "--version-info", file.name]
        # Its words are read, so they must be English. It fails on what is no library, and then says little.
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        ).stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code: 1 if a wheel must not be published."""
    parser = argparse.ArgumentParser(prog="check_wheel.py", description=__doc__)
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    code = 0
    for wheel in parser.parse_args(arguments).wheels:
        try:
            found = list(faults(wheel))
        except (OSError, zipfile.BadZipFile) as error:
            found = [f"it cannot be read: {error}"]
        print(f"{wheel.name}: {'refused' if found else 'good'}")
        for each in found:
            print(f"  {each}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
