"""Writes the licences and notices of all software inside the extension module, for the wheel: `--out FOLDER`.

The texts come from cargo's registry at build time. `license-files` in pyproject.toml takes the file into the wheel.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linked import Incomplete, Library, Package, compiler_version, libraries, linked_packages, metadata_of

FILE = "LICENSE.third-party.txt"
"""The name matches `license-files` in pyproject.toml."""
NAMES = re.compile(r"(?:un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
MIT_BEGIN = "Permission is hereby granted"
RULE = "=" * 100


@dataclass(frozen=True)
class Part:
    """A piece of software, with the texts of its licences."""

    name: str
    version: str
    license: str
    texts: tuple[str, ...]


def parts_of(metadata: Mapping[str, Any]) -> list[Part]:
    """Returns the C libraries and the Rust packages of others, each with at least one text.

    Raises:
        Incomplete: A part has no licence.
    """
    packages = [each for each in linked_packages(metadata) if not each.is_own]
    found = [Part(each.name, each.version, each.license, (text_of(each),)) for each in libraries(metadata)]
    texts = {each.id: texts_of(each) for each in packages}
    known = [text for each in texts.values() for text in each]
    for package in packages:
        own = texts[package.id] or (stated(package, known),)
        found.append(Part(package.name, package.version, package.license, own))
    return found


def text_of(library: Library) -> str:
    """Returns the licence of a C library.

    Raises:
        Incomplete: There is no such file, or it is empty.
    """
    try:
        text = library.file.read_text(errors="replace").strip()
    except FileNotFoundError:
        text = ""
    if not text:
        raise Incomplete(f"{library.name} {library.version} has no licence: {library.file} is missing or empty")
    return text


def texts_of(package: Package) -> tuple[str, ...]:
    """Returns the licences and notices of a package, in the order of their files' names; empty if there are none."""
    files = sorted(each for each in package.folder.iterdir() if each.is_file() and NAMES.match(each.name))
    texts = (each.read_text(errors="replace").strip() for each in files)
    return tuple(text for text in texts if text)


def stated(package: Package, known: Iterable[str]) -> str:
    """Returns the text for a package that says MIT in its manifest, alone or as a choice, and holds no text.

    It is that of MIT, for its authors.

    Raises:
        Incomplete: It has another licence, or names no authors.
    """
    body = next((text[text.index(MIT_BEGIN) :] for text in known if MIT_BEGIN in text), None)
    if "MIT" not in package.license.split(" OR ") or not package.authors or body is None:
        raise Incomplete(f"{package.name} {package.version} ({package.license}) has no licence in {package.folder}")
    authors = "\n".join(f"Copyright (c) {author}" for author in package.authors)
    return f"{authors}\n(The package names its authors and the MIT licence in its manifest.)\n\n{body}"


def document(parts: Sequence[Part], compiler: str) -> str:
    """Returns the whole text: a table of the parts, then each text once, with the parts that it is for."""
    return "\n".join([*_table(parts, compiler), *_texts(parts), ""])


def _table(parts: Sequence[Part], compiler: str) -> Iterator[str]:
    yield "The extension module of awoke contains this software of others. Each text below names its parts."
    yield ""
    for part in parts:
        yield f"{part.name} {part.version}: {part.license}"
    yield f"Rust standard library {compiler}: MIT OR Apache-2.0, taken under Apache-2.0; the file LICENSE has its text"


def _texts(parts: Sequence[Part]) -> Iterator[str]:
    by_words: dict[str, tuple[str, list[str]]] = {}
    for part in parts:
        for text in part.texts:
            by_words.setdefault(" ".join(text.split()), (text, []))[1].append(f"{part.name} {part.version}")
    for text, names in by_words.values():
        yield from ("", RULE, ", ".join(names), RULE, "", text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code: 1 if a licence is missing."""
    parser = argparse.ArgumentParser(prog="notices.py", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help=f"the folder for {FILE}: that of pyproject.toml")
    parser.add_argument("--target", help="the Rust target, by default this machine's")
    options = parser.parse_args(arguments)
    try:
        parts = parts_of(metadata_of(options.target))
    except Incomplete as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / FILE).write_text(document(parts, compiler_version()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
