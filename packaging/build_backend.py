"""The build backend, which `pip install .` calls: maturin, set up for people who use awoke without working on it.

A wheel in dist/ is used if it was made from exactly these sources and fits this Python. Otherwise the extension is
compiled without debug symbols in a temporary folder, because `target/` would stay in the checkout with a gigabyte.
pip shows what is printed here with `-v`, or if the build fails.

Editable installations and source distributions are maturin's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import maturin

import sources

DIST = sources.REPOSITORY / "dist"
Settings = Mapping[str, Any] | None

build_editable = maturin.build_editable
build_sdist = maturin.build_sdist
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable

os.environ["MATURIN_NO_MISSING_BUILD_BACKEND_WARNING"] = "1"
"""maturin warns of any backend but itself."""


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Returns what a build needs; also `packaging` if there is a wheel whose tags must be compared."""
    of_wheels = ["packaging>=24"] if any(made_from_these_sources()) else []
    return [*maturin.get_requires_for_build_wheel(config_settings), *of_wheels]


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Writes the metadata of the wheel, and returns the name of their folder."""
    ready = ready_wheel(config_settings)
    if ready is None:
        settings = maturin_settings(config_settings)
        with target_folder():
            written: str = maturin.prepare_metadata_for_build_wheel(metadata_directory, settings)
        return written
    with zipfile.ZipFile(ready) as archive:
        names = [name for name in archive.namelist() if name.partition("/")[0].endswith(".dist-info")]
        archive.extractall(metadata_directory, names)
    return names[0].partition("/")[0]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Writes the wheel, and returns its name. Without a ready one, blocks for minutes."""
    ready = ready_wheel(config_settings)
    if ready is not None:
        print(f"awoke: using {ready}, which was made from these sources", flush=True)
        return Path(shutil.copy(ready, wheel_directory)).name
    settings = maturin_settings(config_settings)
    with target_folder():
        print(f"awoke: compiling in {os.environ['CARGO_TARGET_DIR']}; this takes minutes", flush=True)
        built: str = maturin.build_wheel(wheel_directory, settings, metadata_directory)
    return built


def ready_wheel(config_settings: Settings) -> Path | None:
    """Returns a wheel of dist/ that is what a build would make. Arguments for maturin ask for another one."""
    if maturin.get_maturin_pep517_args(config_settings):
        return None
    return next(filter(fits_this_python, made_from_these_sources()), None)


def made_from_these_sources() -> Iterator[Path]:
    """Yields the wheels in dist/ that were made from the sources as they are."""
    wheels = sorted(DIST.glob("awoke-*.whl"))
    current = sources.digest() if wheels else ""
    return (wheel for wheel in wheels if sources.mark_of(wheel) == current)


def fits_this_python(wheel: Path) -> bool:
    """Tells whether this Python on this system can install a wheel."""
    from packaging.tags import sys_tags  # Required only if there are wheels.
    from packaging.utils import parse_wheel_filename

    return not parse_wheel_filename(wheel.name)[3].isdisjoint(sys_tags())


def maturin_settings(config_settings: Settings) -> dict[str, list[str]]:
    """Returns the settings for maturin: the caller's arguments, or the system's OpenSSL if it has headers."""
    arguments: list[str] = maturin.get_maturin_pep517_args(config_settings)
    if not arguments and has_openssl():
        arguments = ["--no-default-features"]
    if "--profile" not in arguments:
        arguments = ["--profile", "pip", *arguments]
    return {"maturin.build-args": arguments}


def has_openssl() -> bool:
    """Tells whether to link the system's OpenSSL, as the Makefile does: to build one takes minutes."""
    command = ["pkg-config", "--atleast-version=3.0", "openssl"]
    return (
        not os.environ.get("VENDORED")
        and shutil.which(command[0]) is not None
        and subprocess.run(command, check=False).returncode == 0
    )


@contextlib.contextmanager
def target_folder() -> Iterator[None]:
    """Gives cargo a folder that is removed after the block, unless `CARGO_TARGET_DIR` names one to keep."""
    if "CARGO_TARGET_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="awoke-build-") as folder:
        os.environ["CARGO_TARGET_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["CARGO_TARGET_DIR"]
