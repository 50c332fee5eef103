"""Writes the bill of materials of the extension module as CycloneDX, for the wheel: `--out FILE`.

maturin's own one names Rust packages only, with folders of the build machine, an hour and a random number. This one
also names the C libraries, and is the same for the same sources. PEP 770 has its place: `.dist-info/sboms/`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from linked import EXTENSION, Incomplete, Library, Package, compiler_version, libraries, linked_packages, metadata_of


def bill(metadata: Mapping[str, Any], compiler: str) -> dict[str, Any]:
    """Returns the bill of materials: awoke, the Rust packages, the C libraries, and which of them needs which.

    Raises:
        Incomplete: A version or a licence is missing.
    """
    packages = linked_packages(metadata)
    built_in = sorted(libraries(metadata), key=lambda each: each.name)
    (extension,) = (each for each in packages if each.name == EXTENSION)
    root = f"pkg:pypi/awoke@{extension.version}"
    standard = component("rust-std", compiler, "MIT OR Apache-2.0", f"pkg:generic/rust-std@{compiler}")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component("awoke", extension.version, extension.license, root)},
        "components": [*map(of_package, packages), *map(of_library, built_in), standard],
        "dependencies": [
            {"ref": root, "dependsOn": [extension.purl]},
            *dependencies(packages, built_in),
        ],
    }


def component(name: str, version: str, license: str, purl: str) -> dict[str, Any]:
    """Returns a component.

    Raises:
        Incomplete: It has no licence.
    """
    if not license:
        raise Incomplete(f"{name} {version} states no licence")
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{"expression": license}],
        "purl": purl,
    }


def of_package(package: Package) -> dict[str, Any]:
    """Returns the component of a Rust package."""
    return component(package.name, package.version, package.license, package.purl)


def of_library(library: Library) -> dict[str, Any]:
    """Returns the component of a C library, with the name that the lists of known weaknesses use."""
    found = component(library.name, library.version, library.license, library.purl)
    if library.cpe is not None:
        found["cpe"] = f"{library.cpe}:{library.version}:*:*:*:*:*:*:*"
    return found


def dependencies(packages: Sequence[Package], built_in: Sequence[Library]) -> list[dict[str, Any]]:
    """Returns the edges: from a package to the packages and to the libraries that it brings."""
    purls = {each.id: each.purl for each in packages}
    found = []
    for package in packages:
        linked = {purls[each] for each in package.linked if each in purls}
        brought = {each.purl for each in built_in if brings(package, each, purls)}
        if linked or brought:
            found.append({"ref": package.purl, "dependsOn": sorted(linked | brought)})
    return found


def brings(package: Package, library: Library, linked: Collection[str]) -> bool:
    """Tells if a package brings a library: it holds its source, or builds it from a package that is not linked."""
    source = library.package.id
    return source == package.id if source in linked else source in package.needed


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code: 1 if a part is incomplete."""
    parser = argparse.ArgumentParser(prog="sbom.py", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--target", help="the Rust target, by default this machine's")
    options = parser.parse_args(arguments)
    try:
        found = bill(metadata_of(options.target), compiler_version())
    except Incomplete as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
