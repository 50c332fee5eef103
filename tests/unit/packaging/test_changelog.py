"""A release without a section in the changelog, or with another version in the sources, is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import changelog

CHANGES = """# Changes

## Versions

- not a change

## 0.2.0 (2026-12-01)

### Swarm

- A node.

## 0.1.0

text
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "0.2.0"\n')
    (tmp_path / "python" / "awoke").mkdir(parents=True)
    (tmp_path / "python" / "awoke" / "__init__.py").write_text('__version__ = "0.2.0"\n')
    return tmp_path


def test_a_described_version_passes(root: Path) -> None:
    assert list(changelog.faults(root, "0.2.0")) == []
    assert changelog.main(["0.2.0", "--root", str(root)]) == 0


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("0.3.0", "has no section"),
        ("0.1.0", "lists no change"),
        ("0.2", "has no section"),
        ("0.2.0.1", "has no section"),
        ("Versions", "pyproject.toml has version 0.2.0, not Versions"),
    ],
)
def test_a_version_without_changes_of_its_own_is_refused(
    root: Path, version: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert changelog.main([version, "--root", str(root)]) == 1
    assert fault in capsys.readouterr().err


@pytest.mark.parametrize("file", ["pyproject.toml", "Cargo.toml", "python/awoke/__init__.py"])
def test_a_file_with_another_version_is_named(root: Path, file: str) -> None:
    text = (root / file).read_text()
    (root / file).write_text(text.replace("0.2.0", "0.2.1"))

    assert list(changelog.faults(root, "0.2.0")) == [f"{file} has version 0.2.1, not 0.2.0"]


def test_the_files_of_this_checkout_agree() -> None:
    assert len(set(changelog.versions(changelog.REPOSITORY).values())) == 1
