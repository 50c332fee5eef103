"""Builds the wheels of a release into dist/, tries each, and prints a table of them.

usage: python packaging/wheels.py [--here | NAME...]

A NAME is one such as x86_64-cp311-abi3, and `--here` the wheel for this Python; without either, all are built.

A wheel that cannot be built here is named with the reason. The end is 1 if a wheel that was built fails its trial, or
has a fault that `check_wheel.py` finds. The debug symbols of each wheel go into dist/symbols/.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import check_wheel
import sources
import toolchain
import wheel_file
from targets import MANYLINUX, WHEELS, Wheel, lacking, rust_for
from toolchain import REPOSITORY, WORK
from trial import Trial, trials

DIST = REPOSITORY / "dist"
SYMBOLS = DIST / "symbols"
Row = tuple[str, str, str, str]
"""A line of the table: file, size, the C library that it needs, and what was tried or is wrong."""


@dataclass(frozen=True)
class Built:
    """A wheel that was built: its file, its trials, and what is wrong with it."""

    file: Path
    trials: list[Trial]
    faults: list[str]

    @property
    def is_good(self) -> bool:
        """Tells whether it can be published."""
        return not self.faults and all(each.is_passed for each in self.trials)


def main(names: list[str]) -> int:
    """Builds the wheels of these names, and returns the exit code. Blocks for minutes."""
    if names == ["--here"]:
        names = [name_here()]
    unknown = set(names) - {wheel.name for wheel in WHEELS}
    if unknown:
        sys.exit(f"no such wheel: {' '.join(sorted(unknown))}; there are {' '.join(wheel.name for wheel in WHEELS)}")
    results = [attempt(wheel) for wheel in WHEELS if not names or wheel.name in names]
    print(table([line for line, _ in results]))
    return 0 if all(is_good for _, is_good in results) else 1


def attempt(wheel: Wheel) -> tuple[Row, bool]:
    """Builds a wheel if this machine can. Returns its line of the table, and whether nothing is wrong."""
    missing = lacking(wheel.architecture)
    if missing:
        return (wheel.name, "", "", "not built, this machine lacks " + "; ".join(missing)), True
    try:
        built = make(wheel)
    except subprocess.CalledProcessError as error:
        return (wheel.name, "", "", f"FAILED: {error.cmd[0]} ended with {error.returncode}"), False
    return row(wheel, built), built.is_good


def name_here() -> str:
    """Returns the name of the wheel that the running Python can install."""
    version = "{}.{}".format(*sys.version_info[:2]) + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return next(wheel.name for wheel in WHEELS if wheel.architecture.is_here and wheel.runs_on(version))


def make(wheel: Wheel) -> Built:
    """Builds a wheel, takes its debug symbols out, tries it, and checks it."""
    print(f"== {wheel.name}", flush=True)
    rust, epoch = rust_for(wheel.architecture), time_of_sources()
    assert rust is not None, "lacking() has found a compiler"
    environment = {**toolchain.environment(wheel.architecture, rust, epoch), "AWOKE_COMMIT": commit_of_sources()}
    mark = sources.digest()  # Before the build: what changes meanwhile may be in the wheel or not.
    run_script("notices.py", "--out", REPOSITORY, wheel, environment)
    file = finish(wheel, compile(wheel, environment), environment, mark)
    symbols = check_wheel.faults_of_symbols(SYMBOLS / f"{file.stem}.debug", wheel.architecture.tool("objcopy"))
    return Built(file, trials(wheel, file), [*check_wheel.faults(file), *symbols])


def time_of_sources() -> int:
    """Returns `SOURCE_DATE_EPOCH`, or the time of the last commit: the time, in seconds, that a build writes down."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    commit = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
    return int(given or subprocess.run(commit, capture_output=True, text=True, check=True).stdout)


def commit_of_sources() -> str:
    """Returns `AWOKE_COMMIT`, or the commit of the checkout with a word if files differ; empty without a checkout."""
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    given = os.environ.get("AWOKE_COMMIT")
    return given or subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def run_script(script: str, option: str, place: Path, wheel: Wheel, environment: Mapping[str, str]) -> None:
    """Runs a script of this folder that writes what ships with a wheel."""
    path = Path(__file__).with_name(script)
    command = [sys.executable, str(path), option, str(place), "--target", wheel.architecture.rust]
    subprocess.run(command, env=environment, check=True)


def compile(wheel: Wheel, environment: Mapping[str, str]) -> Path:
    """Compiles the extension, and returns the wheel that maturin makes of it. Blocks for minutes."""
    raw = WORK / wheel.architecture.name / "raw" / wheel.name
    raw.mkdir(parents=True, exist_ok=True)
    for old in raw.glob("*.whl"):
        old.unlink()
    command = ["maturin", "build", "--profile", "wheel", "--locked", "--out", str(raw)]
    command += ["--target", wheel.architecture.rust, "--compatibility", MANYLINUX]
    command += ["--interpreter", f"python{wheel.python}", *(["--features", "abi3"] if wheel.is_abi3 else [])]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    (file,) = raw.glob("*.whl")
    return file


def finish(wheel: Wheel, raw: Path, environment: Mapping[str, str], mark: str) -> Path:
    """Writes the wheel to publish into dist/: without debug symbols, with its bill of materials and its mark."""
    DIST.mkdir(exist_ok=True)
    contents = wheel_file.read(raw)
    name = wheel_file.extension_in(contents)
    library = raw.with_name(Path(name).name)
    library.write_bytes(contents[name])
    wheel_file.split(library, SYMBOLS / f"{raw.stem}.debug", wheel.architecture.tool("objcopy"))
    bill = raw.with_name("awoke.cdx.json")
    run_script("sbom.py", "--out", bill, wheel, environment)
    dist_info = wheel_file.dist_info(raw)
    changes = {
        name: library.read_bytes(),
        f"{dist_info}/sboms/{bill.name}": bill.read_bytes(),
        f"{dist_info}/{sources.MARK}": mark.encode(),
    }
    wheel_file.rewrite(raw, DIST / raw.name, changes, int(environment["SOURCE_DATE_EPOCH"]))
    python = toolchain.environment_of_tools() / "bin" / "python"
    subprocess.run([python, Path(__file__).with_name("squeeze.py"), DIST / raw.name], check=True)
    return DIST / raw.name


def oldest_libc(file: Path) -> str:
    """Returns the newest version of the C library that the extension asks for."""
    contents = wheel_file.read(file)
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", contents[wheel_file.extension_in(contents)])
    return "glibc {}.{}".format(*max((int(a), int(b)) for a, b in found))


def megabytes(file: Path) -> float:
    """Returns the size of a file in units of 1,000,000 bytes."""
    return file.stat().st_size / 1e6


def row(wheel: Wheel, built: Built) -> Row:
    """Returns a line of the table: file, size, what it needs, and what was tried or is wrong."""
    tried = [f"{each.version}: {each.outcome}" for each in built.trials]
    wrong = [f"FAULT: {each}" for each in built.faults]
    return (built.file.name, f"{megabytes(built.file):.2f} MB", oldest_libc(built.file), "; ".join([*wrong, *tried]))


def table(rows: list[Row]) -> str:
    """Returns rows as the lines of a table, with columns of one width."""
    rows = [("Wheel", "Size", "Needs", "Tried"), *rows]
    widths = [max(len(each[column]) for each in rows) for column in range(3)]
    return "\n".join("  ".join([*map(str.ljust, each[:3], widths), each[3]]) for each in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
