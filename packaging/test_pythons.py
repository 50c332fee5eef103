"""Runs the tests on each supported Python that this machine has, and tells which it does not have.

1. Find the Pythons: in the folder PYTHONS (`3.14t/bin/python3.14t`), on PATH, among pyenv's.
2. For each: a virtual environment `.venvs/VERSION` with what the tests need, and the extension built for it.
3. Run pytest in it, and print a line of results.

Packages without a wheel for a Python are left out: the tests that need one are skipped, and say so. psycopg needs none:
without its extra `binary` it loads the system's libpq.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13", "3.14", "3.14t")
"""The last one is the build without the GIL."""
TOOLS = ("ruff",)
"""Of the extra `dev`: not needed to run tests."""
SAME_ON_ALL = ("structure", "documentation", "language", "shape")
"""`tests/unit/test_….py` that read the repository's texts: they run on the first Python only."""
IDENTITY = (
    "import sys, sysconfig; "
    "print('%d.%d' % sys.version_info[:2] + 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
)


class Results(NamedTuple):
    """The outcome of one run of pytest."""

    passed: int
    skipped: int
    failed: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.skipped} skipped, {self.failed} failed"


def candidates(version: str) -> Iterator[Path]:
    """Yields where a Python may be, the likeliest first."""
    name, plain, suffix = f"python{version}", version.removesuffix("t"), "t" * version.endswith("t")
    if given := os.environ.get("PYTHONS"):
        yield from sorted(Path(given).glob(f"*/bin/{name}"))
    if found := shutil.which(name):
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{plain}.*{suffix}/bin/{name}"), reverse=True)


def find(version: str) -> Path | None:
    """Returns the first candidate that runs and is of this version."""
    for each in candidates(version):
        done = subprocess.run([each, "-c", IDENTITY], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return each
    return None


def requirements() -> list[str]:
    """Returns what the package and its tests need."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    return [each for each in needed if not each.startswith(TOOLS)]


def without_extras(requirement: str) -> str:
    """Returns a requirement without its extras."""
    return re.sub(r"\[[^]]*\]", "", requirement)


def pip(python: Path, *packages: str) -> bool:
    """Installs packages that have a wheel; returns whether all could be installed."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    return subprocess.run([*command, *packages], stderr=subprocess.DEVNULL, check=False).returncode == 0


def environment(version: str, python: Path) -> Path:
    """Returns the Python of the virtual environment of this version, made or renewed where it must be."""
    folder = REPOSITORY / ".venvs" / version
    inside, stamp = folder / "bin" / "python", folder / "stamp"
    if stamp.exists() and stamp.stat().st_mtime > (REPOSITORY / "pyproject.toml").stat().st_mtime:
        return inside
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    needed = requirements()
    if not pip(inside, *needed):
        missing = [each for each in needed if not (pip(inside, each) or pip(inside, without_extras(each)))]
        print(f"{version}: no wheel of {', '.join(missing)}; the tests that need them are skipped", flush=True)
    stamp.touch()
    return inside


def build(python: Path) -> None:
    """Builds the extension for this Python; it lies beside those of the others. A change of Python builds PyO3 anew."""
    variables = {**os.environ, "VIRTUAL_ENV": str(python.parent.parent)}
    more = os.environ.get("BUILD_ARGS", "").split()
    command = [str(python.parent / "maturin"), "develop", "--release", "--quiet", *more]
    subprocess.run(command, cwd=REPOSITORY, env=variables, check=True)


def run(version: str, python: Path, arguments: Sequence[str]) -> Results:
    """Runs pytest, and returns what it counted."""
    report = REPOSITORY / ".venvs" / f"{version}.xml"
    report.unlink(missing_ok=True)
    left_out = [] if version == SUPPORTED[0] else [f"--ignore=tests/unit/test_{each}.py" for each in SAME_ON_ALL]
    command = [str(python), "-m", "pytest", "--quiet", f"--junitxml={report}", *left_out, *arguments]
    code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
    if not report.exists():
        return Results(0, 0, 1)
    suite = next(ElementTree.parse(report).iter("testsuite"))
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    if code != 0:
        failed = max(failed, 1)  # It ended before its last test.
    return Results(max(0, total - skipped - failed), skipped, failed)


def how_to_get(version: str) -> str:
    """Returns how a Python that was not found can be installed."""
    if version.startswith("3.14"):
        folder = os.environ.get("PYTHONS", "/opt/pythons")
        return f"packaging/build_python.sh {version} {folder}/{version}, then PYTHONS={folder}"
    return f"pyenv install {version}"


def main() -> int:
    """Runs the command line; returns 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", action="append", choices=SUPPORTED, metavar="VERSION", help="may be repeated")
    options, arguments = parser.parse_known_args()
    wanted = options.only or SUPPORTED
    found = {version: python for version in wanted if (python := find(version)) is not None}
    for version in wanted:
        if version not in found:
            print(f"{version}: not found; to get it: {how_to_get(version)}", flush=True)
    table: dict[str, Results] = {}
    for version, python in found.items():
        print(f"{version}: {python}", flush=True)
        inside = environment(version, python)
        build(inside)
        table[version] = run(version, inside, arguments or ["-n", "3", "--dist", "worksteal"])
    for version, results in table.items():
        print(f"Python {version:5} {results}")
    return 1 if not table or any(results.failed for results in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
