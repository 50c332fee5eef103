"""The mark of a wheel's sources: it changes with each of them, and with nothing that is built."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import sources


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in (*sources.ROOT_FILES, "crates/engine/src/lib.rs", "python/awoke/app.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize("name", ["Cargo.lock", "crates/engine/src/lib.rs", "python/awoke/new.py"])
def test_a_changed_or_added_source_changes_the_hash(checkout: Path, name: str) -> None:
    before = sources.digest(checkout)
    (checkout / name).write_text("changed")
    assert sources.digest(checkout) != before


@pytest.mark.parametrize(
    "name",
    ["python/awoke/_native.abi3.so", "python/awoke/pages/docs/rpc.md", f"{sources.FETCHED}/uPlot.min.css", "README.md"],
)
def test_what_is_built_or_fetched_changes_nothing(checkout: Path, name: str) -> None:
    before = sources.digest(checkout)
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text("built")
    assert sources.digest(checkout) == before


def test_a_renamed_source_changes_the_hash(checkout: Path) -> None:
    before = sources.digest(checkout)
    (checkout / "python/awoke/app.py").rename(checkout / "python/awoke/apps.py")
    assert sources.digest(checkout) != before


def test_this_checkout_has_its_sources() -> None:
    found = {file.as_posix() for file in sources.files()}
    assert found >= {"pyproject.toml", "python/awoke/__init__.pyi", "crates/bridge/src/lib.rs"}


def test_a_wheel_without_a_mark_has_none(tmp_path: Path) -> None:
    wheel = tmp_path / "awoke-0.1.0-py3-none-any.whl"
    assert sources.mark_of(wheel) is None
    wheel.write_text("no archive")
    assert sources.mark_of(wheel) is None
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("awoke/__init__.py", "")
    assert sources.mark_of(wheel) is None
