"""The tools of a wheel's build: OpenSSL's arguments stand last, and other flags empty the folder of the build."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import toolchain
from targets import ARCHITECTURES, Rust

X86_64 = ARCHITECTURES[0]


def test_perl_gets_the_arguments_for_openssl_behind_those_of_its_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "WORK", tmp_path)
    (tmp_path / "bin").mkdir()
    perl = tmp_path / "bin" / "perl"
    perl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    perl.chmod(0o755)
    launcher = toolchain.launchers(tmp_path / "tools", X86_64, Rust("sh", "sh")) / toolchain.PERL
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run([launcher, "./Configure", "-O2"], env=path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["./Configure", "-O2", *toolchain.for_openssl()]


def test_openssl_knows_each_part_that_is_left_out() -> None:
    """Its `Configure` refuses other names, after minutes of a build."""
    registry = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src"
    found = sorted(registry.glob("*/openssl-src-300.*/openssl/Configure"))
    if not found:
        pytest.skip("cargo has not fetched OpenSSL: this machine links the system's")
    configure = found[-1].read_text()
    (listed,) = re.findall(r"my @disablables = \((.+?)\);", configure, re.DOTALL)
    protocols = set(re.findall(r"my @(?:tls|dtls) = qw\((.+?)\)", configure)[0].split())
    known = set(re.findall(r'"([\w-]+)"', listed)) | protocols
    assert "tls1" in known
    assert set(toolchain.OPENSSL_WITHOUT) - known == set()


def test_a_folder_of_a_build_is_emptied_by_other_flags_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "WORK", tmp_path)
    folder = toolchain.folder_of_cargo(X86_64, ["-O2"])
    built = folder / "librdkafka.a"
    built.touch()
    assert toolchain.folder_of_cargo(X86_64, ["-O2"]) == folder
    assert built.exists()
    assert toolchain.folder_of_cargo(X86_64, ["-Os"]) == folder
    assert not built.exists()


def test_what_zig_compiles_by_itself_has_no_folder_of_the_machine(tmp_path: Path) -> None:
    maps = [f"-ffile-prefix-map={folder}={name}" for folder, name in toolchain.paths_without_machine().items()]
    own = toolchain.for_zig(tmp_path, maps)
    assert own["CCC_OVERRIDE_OPTIONS"].startswith("#+-ffile-prefix-map=")
    assert f"+-ffile-prefix-map={toolchain.REPOSITORY}=awoke" in own["CCC_OVERRIDE_OPTIONS"].split()
    assert {own["ZIG_GLOBAL_CACHE_DIR"], own["ZIG_LOCAL_CACHE_DIR"]} == {str(tmp_path / "zig")}
