"""The OpenSSL of wheels is compared with OpenSSL's own list: weaknesses, and the end of its line."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import openssl_advisories
from openssl_advisories import faults, locked_version

TODAY = datetime.date(2026, 11, 28)
LINES = {"4.0": {"eol": "14 May 2027"}, "3.6": {"eol": "01 Nov 2026"}, "3.5": {"eol": "08 Apr 2030"}}
LOCK = '[[package]]\nname = "openssl-src"\nversion = "300.999.0"\n[[package]]\nname = "openssl-src"\nversion = "{}"\n'


def span(version: str, **until: str) -> dict[str, str]:
    return {"status": "affected", "version": version, **until}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Returns a list in the form of OpenSSL's."""
    (tmp_path / "data.json").write_text(json.dumps(LINES))
    (tmp_path / "secjson").mkdir()
    spans: dict[str, list[dict[str, str]]] = {
        "CVE-2026-1": [span("4.0.0", lessThan="4.0.3"), span("3.5.0", lessThan="3.5.9")],
        "CVE-2022-2": [span("3.0.0", lessThanOrEqual="3.5.7"), span("1.1.1", lessThan="1.1.1zj")],
        "CVE-2016-3": [{"status": "unaffected", "version": "1.1.0"}],
    }
    for name, versions in spans.items():
        rating = {"other": {"content": {"text": "High"}}}
        parts: Any = {"affected": [{"versions": versions}], "metrics": [rating], "title": "A fault"}
        (tmp_path / "secjson" / f"{name}.json").write_text(json.dumps({"containers": {"cna": parts}}))
    return tmp_path


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((4, 0, 3), []),
        ((4, 0, 2), ["CVE-2026-1 (High): A fault; mended in 4.0.3"]),
        ((3, 6, 3), ["OpenSSL 3.6 has had no support since 01 Nov 2026"]),
        ((3, 5, 8), ["CVE-2026-1 (High): A fault; mended in 3.5.9"]),
        (
            (3, 5, 7),
            ["CVE-2022-2 (High): A fault; mended in none up to 3.5.7", "CVE-2026-1 (High): A fault; mended in 3.5.9"],
        ),
    ],
)
def test_weaknesses_and_the_end_of_a_line_are_faults(
    published: Path, version: tuple[int, int, int], expected: list[str]
) -> None:
    assert list(faults(published, version, TODAY)) == expected


def test_a_list_that_is_not_there_is_no_good_news(published: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(ValueError, match="has no weaknesses"):
        list(faults(tmp_path_factory.mktemp("empty"), (4, 0, 3), TODAY))
    with pytest.raises(ValueError, match=r"does not know OpenSSL 4\.1"):
        list(faults(published, (4, 1, 0), TODAY))


def test_the_version_is_that_of_the_crate_that_has_the_source() -> None:
    assert locked_version(LOCK.format("400.0.2+4.0.3")) == (4, 0, 3)
    with pytest.raises(ValueError, match="no openssl-src"):
        locked_version(LOCK.format("1.0.0"))


def test_the_exit_code_tells_of_faults(
    published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (published / "Cargo.lock").write_text(LOCK.format("300.5.5+3.5.5"))
    monkeypatch.setattr(openssl_advisories, "REPOSITORY", published)
    assert openssl_advisories.main([str(published)]) == 1
    assert capsys.readouterr().out.endswith("OpenSSL 3.5.5: 2 faults\n")
