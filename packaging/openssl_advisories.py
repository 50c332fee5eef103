"""Compares the OpenSSL of wheels with OpenSSL's own list of weaknesses and of the end of each line.

usage: python packaging/openssl_advisories.py [FOLDER]

FOLDER is a checkout of the list; without it, the list is fetched by git. Crates' own list of weaknesses names the crate
that holds OpenSSL weeks after a release of OpenSSL, or never.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
LIST = "https://github.com/openssl/release-metadata"
CRATE = "openssl-src"
DAYS = ("%d %b %Y", "%b %Y")
Version = tuple[int, int, int]


def main(arguments: list[str]) -> int:
    """Prints what is wrong, and returns the exit code. Blocks for the network without a folder."""
    locked = locked_version((REPOSITORY / "Cargo.lock").read_text())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(arguments[0] if arguments else made)
        if not arguments and subprocess.run(["git", "clone", "--quiet", "--depth", "1", LIST, made]).returncode:
            print(f"could not run for OpenSSL: {LIST} can't be fetched", file=sys.stderr)
            return 1
        found = [*faults(folder, locked, datetime.date.today())]
    print(*found, f"OpenSSL {'.'.join(map(str, locked))}: {len(found) or 'no'} faults", sep="\n")
    return 1 if found else 0


def locked_version(lock: str) -> Version:
    """Returns the version of OpenSSL whose source is locked.

    Raises:
        ValueError: There is none.
    """
    for package in tomllib.loads(lock)["package"]:
        version = parsed(package["version"].partition("+")[2])
        if package["name"] == CRATE and version is not None:
            return version
    raise ValueError(f"Cargo.lock has no {CRATE} that names the version of its OpenSSL")


def faults(folder: Path, version: Version, today: datetime.date) -> Iterator[str]:
    """Yields the reasons why a version must be replaced: weaknesses that it has, and the end of its line.

    Raises:
        ValueError: The list is not there, or does not know the line.
    """
    advisories = sorted(folder.glob("secjson/CVE-*.json"))
    if not advisories:
        raise ValueError(f"{folder} has no weaknesses of OpenSSL")
    for file in advisories:
        parts = json.loads(file.read_text()).get("containers", {}).get("cna", {})
        fixed = [mended for affected in parts.get("affected", ()) for mended in _mended(affected, version)]
        if fixed:
            rating = ", ".join(_texts(parts.get("metrics", ()))) or "not rated"
            yield f"{file.stem} ({rating}): {parts.get('title', 'no title')}; mended in {', '.join(fixed)}"
    line = f"{version[0]}.{version[1]}"
    lines = json.loads((folder / "data.json").read_text())
    if line not in lines:
        raise ValueError(f"the list does not know OpenSSL {line}")
    if last_day(lines[line]["eol"]) <= today:
        yield f"OpenSSL {line} has had no support since {lines[line]['eol']}"


def last_day(text: str) -> datetime.date:
    """Returns the day on which a line ends: `14 May 2027`, or the first day of `Nov 2027`."""
    for form in DAYS:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no day")


def parsed(text: str) -> Version | None:
    """Returns a version as numbers; None for one with letters, of before 3.0."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _mended(affected: dict[str, Any], version: Version) -> Iterator[str]:
    """Yields the versions that mend a weakness, or are its last, if this version has it."""
    for span in affected.get("versions", ()):
        until, last = span.get("lessThan"), span.get("lessThanOrEqual")
        begin, end = parsed(span.get("version", "")), parsed(until or last or "")
        if span.get("status") != "affected" or begin is None or end is None or version < begin:
            continue
        if version < end or (last and version == end):
            yield until or f"none up to {last}"


def _texts(metrics: Any) -> Iterator[str]:
    for each in metrics:
        text = each.get("other", {}).get("content", {}).get("text")
        if text:
            yield text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
