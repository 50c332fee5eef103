"""Refuses a release that CHANGELOG.md does not describe, or whose version the sources do not have: `VERSION`."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def section(changelog: str, version: str) -> str | None:
    """Returns the text below a version's heading, `## 0.2.0` or `## 0.2.0 (2026-12-01)`; `None` if it has none."""
    heading = re.compile(rf"^## \[?{re.escape(version)}\]?(?: .*)?$", re.MULTILINE)
    begin = heading.search(changelog)
    if begin is None:
        return None
    rest = changelog[begin.end() :]
    end = re.search(r"^## ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def faults(root: Path, version: str) -> Iterator[str]:
    """Yields the reasons why this version of a checkout must not be released."""
    text = section((root / "CHANGELOG.md").read_text(), version)
    if text is None:
        yield f"CHANGELOG.md has no section '## {version}': rename 'Unreleased', and open a new one above it"
    elif not re.search(r"^- \S", text, re.MULTILINE):
        yield f"the section '## {version}' of CHANGELOG.md lists no change"
    for file, found in versions(root).items():
        if found != version:
            yield f"{file} has version {found}, not {version}"


def versions(root: Path) -> dict[str, str]:
    """Returns the version in each file that has it."""
    package = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    crates = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    module = re.search(r'^__version__ = "(.+)"$', (root / "python/awoke/__init__.py").read_text(), re.MULTILINE)
    return {
        "pyproject.toml": package,
        "Cargo.toml": crates,
        "python/awoke/__init__.py": module[1] if module else "(none)",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code: 1 if the version must not be released."""
    parser = argparse.ArgumentParser(prog="changelog.py", description=__doc__)
    parser.add_argument("version", help="the version to release, as in 0.2.0")
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="the checkout")
    options = parser.parse_args(arguments)
    found = list(faults(options.root, options.version))
    for each in found:
        print(f"error: {each}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
