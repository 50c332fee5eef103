"""The source distribution: its files, the same bytes each time, the list of locked crates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import sdist

FILES = {"awoke-1.0/Cargo.toml": b"[workspace]", "awoke-1.0/Cargo.lock": b"two crates"}


def test_the_files_that_are_written_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "awoke-1.0.tar.gz"
    sdist.write(file, FILES, epoch=1_700_000_000)
    assert sdist.read(file) == FILES


def test_the_same_files_in_another_order_make_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    sdist.write(one, FILES, epoch=1_700_000_000)
    sdist.write(two, dict(reversed(FILES.items())), epoch=1_700_000_000)
    assert one.read_bytes() == two.read_bytes()


def test_the_list_of_crates_is_the_one_that_cargo_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text('#!/bin/sh\n[ "$(cat Cargo.toml)" = "[workspace]" ] && printf "one crate" > Cargo.lock\n')
    cargo.chmod(0o755)
    monkeypatch.setenv("CARGO", str(cargo))
    monkeypatch.setattr(sdist, "WORK", tmp_path)
    assert sdist.locked(FILES, "awoke-1.0/Cargo.lock") == b"one crate"


def test_a_list_that_cargo_refuses_ends_with_its_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CARGO", "false")
    monkeypatch.setattr(sdist, "WORK", tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        sdist.locked(FILES, "awoke-1.0/Cargo.lock")
