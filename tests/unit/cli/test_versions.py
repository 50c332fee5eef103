"""The versions that reports of faults need: of every library in the native module, and of the build."""

from __future__ import annotations

import platform
import re
from typing import Any

import pytest
from typer.testing import CliRunner

import awoke
from awoke import _native
from awoke.cli import versions
from awoke.cli.main import command_line

LIBRARIES = ("librdkafka", "OpenSSL", "zlib", "zstd", "LZ4", "mimalloc")


def output_of(*words: str) -> str:
    done = CliRunner().invoke(command_line(words), [*words], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    return done.output


def test_the_version_is_one_line_with_the_libraries_that_matter_to_security() -> None:
    version = r"\d+\.\d+\.\d+\S*"
    pattern = rf"awoke {version} \(librdkafka {version}, OpenSSL {version}, Python {version}\)\n"
    assert re.fullmatch(pattern, output_of("--version"))


@pytest.mark.parametrize("words", [("--version", "--verbose"), ("--verbose", "--version")])
def test_all_versions_are_shown_on_request(words: tuple[str, ...]) -> None:
    shown = dict(row.split(maxsplit=1) for row in output_of(*words).splitlines()[1:])
    assert shown["awoke"] == awoke.__version__
    for name in LIBRARIES:
        assert re.match(r"\d+\.\d+\.\d+", shown[name]), name
    assert shown["librdkafka"] == awoke.librdkafka_version()
    assert shown["Python"].endswith(platform.python_version())
    assert shown["build"].startswith("profile ")


def test_the_doctor_shows_all_versions() -> None:
    words = ["doctor", "-b", "127.0.0.1:1", "--timeout-s", "0.1"]
    shown = CliRunner().invoke(command_line(words), words, env={"COLUMNS": "200"}).output
    for name, value in versions.rows():
        assert re.search(rf"^{name} +{re.escape(value)}$", shown, re.MULTILINE), name


Facts = dict[str, str | None]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"commit": None, "time": None}, "profile wheel, aarch64"),
        ({"commit": "abc123", "time": "1760000000"}, "profile wheel, aarch64, commit abc123, of 2025-10-09"),
    ],
)
def test_the_build_has_a_commit_and_a_date_only_if_it_was_told(
    told: Facts, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts: list[Any] = [("profile", "wheel"), ("target", "aarch64"), *told.items()]
    monkeypatch.setattr(_native, "build_facts", lambda: facts)
    assert versions.build() == shown
