"""Lists the software inside the extension module: Rust packages, and the C libraries that some of them hold.

Nothing is kept in the repository: names and versions come from `cargo metadata`, files from cargo's registry.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
EXTENSION = "awoke-bridge"
"""The package that becomes the extension module."""


class Incomplete(Exception):
    """A part whose version or licence is not where it is expected."""


@dataclass(frozen=True)
class Package:
    """A Rust package, as cargo has resolved it."""

    id: str
    name: str
    version: str
    license: str
    """An SPDX expression."""
    authors: tuple[str, ...]
    folder: Path
    features: frozenset[str]
    is_own: bool
    """The package is part of awoke."""
    linked: tuple[str, ...]
    """The ids of the packages that are linked with it."""
    needed: tuple[str, ...]
    """The ids of all its dependencies: linked, macros, and those of its build script."""

    @property
    def purl(self) -> str:
        """The package's address in a bill of materials."""
        return f"pkg:cargo/{self.name}@{self.version.replace('+', '%2B')}"


@dataclass(frozen=True)
class Library:
    """A C library whose source is in a Rust package."""

    name: str
    version: str
    license: str
    """An SPDX expression."""
    file: Path
    """The file with its licence."""
    package: Package
    cpe: str | None
    """The name under which the lists of known weaknesses have it, without the version."""

    @property
    def purl(self) -> str:
        """The library's address in a bill of materials."""
        return f"pkg:generic/{self.name.lower()}@{self.version}"


def metadata_of(target: str | None = None) -> dict[str, Any]:
    """Returns cargo's description of the workspace for a target, by default this machine's. Fetches missing sources.

    Raises:
        subprocess.CalledProcessError: cargo failed; its message is on standard error.
    """
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target or host()]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE).stdout
    )
    return found


def host() -> str:
    """Returns the target for which the compiler builds by default."""
    said = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return str(re.findall(r"^host: (.+)$", said, re.MULTILINE)[0])


def compiler_version() -> str:
    """Returns the version of the Rust compiler, which is that of the standard library."""
    said = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return str(re.findall(r"^release: (.+)$", said, re.MULTILINE)[0])


def packages_of(metadata: Mapping[str, Any]) -> dict[str, Package]:
    """Returns all packages of the description, by their ids."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    return {each["id"]: _package(each, nodes[each["id"]]) for each in metadata["packages"] if each["id"] in nodes}


def _package(described: Mapping[str, Any], node: Mapping[str, Any]) -> Package:
    kinds = {dep["pkg"]: {each["kind"] for each in dep["dep_kinds"]} for dep in node["deps"]}
    is_macro = any("proc-macro" in target["kind"] for target in described["targets"])
    return Package(
        id=described["id"],
        name=described["name"],
        version=described["version"],
        license=(described["license"] or "").replace("/", " OR "),
        authors=tuple(described["authors"]),
        folder=Path(described["manifest_path"]).parent,
        features=frozenset(node["features"]),
        is_own=described["source"] is None,
        # A macro runs in the compiler: neither it nor its dependencies are in the product.
        linked=() if is_macro else tuple(sorted(name for name, of in kinds.items() if None in of)),
        needed=tuple(sorted(name for name, of in kinds.items() if of & {None, "build"})),
    )


def reached(packages: Mapping[str, Package], edges: Callable[[Package], tuple[str, ...]]) -> list[Package]:
    """Returns the packages that the extension reaches over these edges, itself too, in the order of their names."""
    waiting = [each.id for each in packages.values() if each.name == EXTENSION]
    found: dict[str, Package] = {}
    while waiting:
        package = packages[waiting.pop()]
        if package.id not in found:
            found[package.id] = package
            waiting += edges(package)
    return sorted(found.values(), key=lambda each: (each.name, each.version))


def linked_packages(metadata: Mapping[str, Any]) -> list[Package]:
    """Returns the packages that are linked into the extension, in the order of their names."""
    macros = {
        each["id"] for each in metadata["packages"] if any("proc-macro" in target["kind"] for target in each["targets"])
    }
    return [each for each in reached(packages_of(metadata), lambda package: package.linked) if each.id not in macros]


Version = Callable[[Package, Path], str]
"""Returns a library's version from its package and the library's folder in it."""


def numbers(file: str, *names: str) -> Version:
    """Returns a reader of a version whose numbers follow these words in a file."""

    def read(package: Package, folder: Path) -> str:
        text = (folder / file).read_text(errors="replace")
        found = [re.search(rf"\b{name}[ =]+\"?([0-9.]+)", text) for name in names]
        if not all(found):
            raise Incomplete(f"{package.name} {package.version}: no version in {folder / file}")
        return ".".join(match[1] for match in found if match)

    return read


def two_digits_each(file: str, name: str) -> Version:
    """Returns a reader of a version that a file has as one number: 30302 for 3.3.2."""
    read = numbers(file, name)

    def split(package: Package, folder: Path) -> str:
        number = int(read(package, folder))
        return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"

    return split


def after_the_plus(package: Package, folder: Path) -> str:
    """Returns the second half of a package's version: 2.12.1 of 4.10.0+2.12.1."""
    version = package.version.partition("+")[2]
    if not version:
        raise Incomplete(f"{package.name} {package.version} does not name the version of its library")
    return version


@dataclass(frozen=True)
class Place:
    """The place of a C library in a package."""

    name: str
    license: str
    package: str
    folder: str
    file: str
    """The file with its licence, in the folder."""
    version: Version
    cpe: str | None = None


PLACES = (
    Place("librdkafka", "BSD-2-Clause", "rdkafka-sys", "librdkafka", "LICENSES.txt", after_the_plus),
    Place(
        "LZ4",
        "BSD-2-Clause",
        "rdkafka-sys",
        "librdkafka",
        "LICENSE.lz4",
        numbers("src/lz4.h", "LZ4_VERSION_MAJOR", "LZ4_VERSION_MINOR", "LZ4_VERSION_RELEASE"),
        "cpe:2.3:a:lz4_project:lz4",
    ),
    Place(
        "OpenSSL",
        "Apache-2.0",
        "openssl-src",
        "openssl",
        "LICENSE.txt",
        numbers("VERSION.dat", "MAJOR", "MINOR", "PATCH"),
        "cpe:2.3:a:openssl:openssl",
    ),
    Place("zlib", "Zlib", "libz-sys", "src/zlib", "LICENSE", numbers("zlib.h", "ZLIB_VERSION"), "cpe:2.3:a:zlib:zlib"),
    Place(
        "zstd",
        "BSD-3-Clause",
        "zstd-sys",
        "zstd",
        "LICENSE",
        numbers("lib/zstd.h", "ZSTD_VERSION_MAJOR", "ZSTD_VERSION_MINOR", "ZSTD_VERSION_RELEASE"),
        "cpe:2.3:a:facebook:zstandard",
    ),
    Place(
        "mimalloc",
        "MIT",
        "libmimalloc-sys",
        "c_src/mimalloc/v3",
        "LICENSE",
        two_digits_each("include/mimalloc.h", "MI_MALLOC_VERSION"),
    ),
)


def libraries(metadata: Mapping[str, Any]) -> Iterator[Library]:
    """Yields the C libraries that are built for the extension.

    Raises:
        Incomplete: A library's version is not where it is expected.
    """
    by_name = {each.name: each for each in reached(packages_of(metadata), lambda package: package.needed)}
    for place in PLACES:
        package = by_name.get(place.package)
        if package is None:
            continue  # mimalloc is for Linux only; OpenSSL may be the system's.
        # A feature of mimalloc's package selects its older line.
        folder = package.folder / ("c_src/mimalloc/v2" if "v2" in package.features else place.folder)
        version = place.version(package, folder)
        yield Library(place.name, version, place.license, folder / place.file, package, place.cpe)
