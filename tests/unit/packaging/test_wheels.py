"""The plan of the wheels and their table: names, Pythons, faults, reasons."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import targets
import trial
import wheels
from targets import ARCHITECTURES, Rust, Wheel
from test_pythons import SUPPORTED

X86_64, AARCH64 = ARCHITECTURES


def test_each_wheel_has_a_name_of_its_own() -> None:
    names = [wheel.name for wheel in targets.WHEELS]
    assert len(set(names)) == len(names)
    assert "x86_64-cp314t" in names


@pytest.mark.parametrize(
    ("wheel", "versions"),
    [
        (Wheel(X86_64, "3.11", is_abi3=True), {"3.11", "3.12", "3.13", "3.14"}),
        (Wheel(X86_64, "3.12", is_abi3=True), {"3.12", "3.13", "3.14"}),
        (Wheel(X86_64, "3.12", is_abi3=False), {"3.12"}),
        (Wheel(X86_64, "3.14t", is_abi3=False), {"3.14t"}),
    ],
    ids=lambda value: value.name if isinstance(value, Wheel) else "",
)
def test_a_wheel_is_tried_with_the_pythons_that_can_install_it(wheel: Wheel, versions: set[str]) -> None:
    assert {version for version in SUPPORTED if wheel.runs_on(version)} == versions


def test_a_compiler_that_is_not_there_has_no_standard_library(tmp_path: Path) -> None:
    broken = tmp_path / "rustc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert not Rust(str(broken), "cargo").has(X86_64.rust)


def test_what_is_missing_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "rust_for", lambda architecture: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    text = "\n".join(targets.lacking(AARCH64))
    assert "libstd-rust-web-dev:arm64" in text
    assert "apt-get install binutils-aarch64-linux-gnu" in text


def test_a_wheel_that_cannot_be_built_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheels, "lacking", lambda architecture: ["a compiler: apt-get install it"])
    assert wheels.main(["aarch64-cp314t"]) == 0
    assert "aarch64-cp314t" in (printed := capsys.readouterr().out)
    assert "apt-get install it" in printed


def test_a_wheel_that_fails_to_build_does_not_keep_others_from_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(wheel: Wheel) -> wheels.Built:
        raise subprocess.CalledProcessError(101, ["maturin", "build"])

    monkeypatch.setattr(wheels, "lacking", lambda architecture: [])
    monkeypatch.setattr(wheels, "make", fail)
    assert wheels.main([]) == 1
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [wheel.name for wheel in targets.WHEELS]
    assert all("FAILED: maturin ended with 101" in line for line in lines)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match=r"no such wheel: cp27.*x86_64-cp311-abi3"):
        wheels.main(["cp27"])


def of_extension(folder: Path, library: bytes) -> Path:
    """Writes a wheel with nothing but an extension."""
    file = folder / "awoke-1.0-cp311-abi3-linux.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("awoke/_native.abi3.so", library)
    return file


def test_the_newest_version_of_the_c_library_is_the_one_that_is_needed(tmp_path: Path) -> None:
    assert wheels.oldest_libc(of_extension(tmp_path, b"GLIBC_2.9 GLIBC_2.28 GLIBC_2.2.5")) == "glibc 2.28"


def test_a_trial_ends_with_the_command_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trial, "WORK", tmp_path)
    fails, not_reached = [sys.executable, "-c", "raise SystemExit(3)"], ["touch", "reached"]
    ended = trial.outcome("3.11", [fails, not_reached])
    assert not ended.is_passed
    assert "SystemExit(3)" in ended.outcome
    assert not (tmp_path / "reached").exists()


def test_the_columns_of_the_table_have_one_width() -> None:
    rows = [("a-long-name.whl", "1.00 MB", "glibc 2.28", "import"), ("b", "", "", "not built")]
    lines = wheels.table(rows).splitlines()
    assert lines[1].index("import") == lines[2].index("not built") == lines[0].index("Tried")


def test_a_build_is_told_the_commit_of_its_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWOKE_COMMIT", raising=False)
    assert re.fullmatch(r"[0-9a-f]{12,}(-dirty)?", wheels.commit_of_sources())

    monkeypatch.setenv("AWOKE_COMMIT", "abc123")
    assert wheels.commit_of_sources() == "abc123"


def test_a_python_that_is_not_there_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "find", lambda version: None)
    monkeypatch.setattr("platform.machine", lambda: X86_64.name)
    (found,) = trial.trials(Wheel(X86_64, "3.14t", is_abi3=False), Path("awoke.whl"))
    assert found.version == "3.14t"
    assert "not tried" in found.outcome
    assert "build_python.sh" in found.outcome
