"""`pip install .`: a wheel made from the same sources is used; a build is stripped and leaves nothing behind."""

from __future__ import annotations

import os
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import maturin
import pytest

import build_backend
import sources

FITTING = "awoke-0.1.0-py3-none-any.whl"
STRANGE = "awoke-0.1.0-cp311-abi3-manylinux_2_28_s390x.whl"
METADATA = "awoke-0.1.0.dist-info/METADATA"


class Maturin:
    """Stands for maturin: keeps its arguments, and the folder that cargo would build in."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.folder = Path()

    def build_wheel(self, directory: str, settings: dict[str, Any], metadata: str | None) -> str:
        self.arguments, self.folder = settings["maturin.build-args"], Path(os.environ["CARGO_TARGET_DIR"])
        (self.folder / "compiled").touch()
        return "built.whl"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Maturin:
    """maturin, in a checkout with an empty dist/, on a system without the headers of OpenSSL."""
    stand_in = Maturin()
    monkeypatch.setattr(maturin, "build_wheel", stand_in.build_wheel)
    monkeypatch.setattr(build_backend, "DIST", tmp_path)
    monkeypatch.setattr(build_backend, "has_openssl", lambda: False)
    for name in ("CARGO_TARGET_DIR", "MATURIN_PEP517_ARGS"):
        monkeypatch.delenv(name, raising=False)
    return stand_in


def add_wheel(name: str, mark: str | None) -> None:
    """Writes a wheel into dist/, made from the sources with this hash."""
    with zipfile.ZipFile(build_backend.DIST / name, "w") as archive:
        archive.writestr("awoke/__init__.py", "")
        archive.writestr(METADATA, "Name: awoke")
        if mark is not None:
            archive.writestr(f"awoke-0.1.0.dist-info/{sources.MARK}", mark)


def test_a_wheel_of_these_sources_is_used_with_its_metadata(
    built: Maturin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_wheel(FITTING, sources.digest())
    assert "packaging>=24" in build_backend.get_requires_for_build_wheel()
    folder, wheels = tmp_path / "metadata", tmp_path / "wheels"
    wheels.mkdir()
    assert build_backend.prepare_metadata_for_build_wheel(str(folder)) == "awoke-0.1.0.dist-info"
    assert {file.name for file in folder.rglob("*") if file.is_file()} == {"METADATA", sources.MARK}
    assert build_backend.build_wheel(str(wheels)) == FITTING
    assert (wheels / FITTING).read_bytes() == (tmp_path / FITTING).read_bytes()
    assert f"using {tmp_path / FITTING}" in capsys.readouterr().out
    assert built.arguments == []


@pytest.mark.parametrize(("name", "mark"), [(FITTING, "0" * 64), (FITTING, None), (STRANGE, "current")])
def test_another_wheel_is_left_alone(built: Maturin, tmp_path: Path, name: str, mark: str | None) -> None:
    add_wheel(name, sources.digest() if mark == "current" else mark)
    assert build_backend.build_wheel(str(tmp_path)) == "built.whl"


def test_a_build_is_stripped_and_its_folder_is_removed(built: Maturin, tmp_path: Path) -> None:
    build_backend.build_wheel(str(tmp_path))
    assert built.arguments == ["--profile", "pip"]
    assert not built.folder.exists()
    assert "CARGO_TARGET_DIR" not in os.environ


def test_a_folder_of_the_caller_stays(built: Maturin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    build_backend.build_wheel(str(tmp_path))
    assert (tmp_path / "compiled").exists()


def test_the_openssl_of_the_system_is_linked(built: Maturin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_backend, "has_openssl", lambda: True)
    build_backend.build_wheel(str(tmp_path))
    assert built.arguments == ["--profile", "pip", "--no-default-features"]


def test_arguments_of_the_caller_decide(built: Maturin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_wheel(FITTING, sources.digest())
    monkeypatch.setattr(build_backend, "has_openssl", lambda: True)
    build_backend.build_wheel(str(tmp_path), {"maturin.build-args": "--sbom-include a.json"})
    assert built.arguments == ["--profile", "pip", "--sbom-include", "a.json"]
    build_backend.build_wheel(str(tmp_path), {"maturin.build-args": "--profile wheel"})
    assert built.arguments == ["--profile", "wheel"]


@pytest.mark.parametrize(("code", "vendored", "expected"), [(0, "", True), (0, "1", False), (1, "", False)])
def test_the_headers_of_openssl_are_looked_for_as_make_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, vendored: str, expected: bool
) -> None:
    tool = tmp_path / "pkg-config"
    tool.write_text(f'#!/bin/sh\n[ "$*" = "--atleast-version=3.0 openssl" ] && exit {code}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("VENDORED", vendored)
    assert build_backend.has_openssl() is expected


def test_an_editable_build_is_maturins_own() -> None:
    """It stays in the target folder of the checkout, where the next one goes on."""
    assert build_backend.build_editable is maturin.build_editable


def test_the_source_distribution_brings_the_backend() -> None:
    project = tomllib.loads((sources.REPOSITORY / "pyproject.toml").read_text())
    assert project["build-system"]["backend-path"] == ["packaging"]
    included = {each["path"] for each in project["tool"]["maturin"]["include"] if "sdist" in each["format"]}
    assert included >= {"packaging/build_backend.py", "packaging/sources.py"}
