"""The bill of materials names the C libraries beside the Rust packages, and nothing of the build machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import linked
import sbom
from linked import Incomplete
from tests.unit.packaging.cargo import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.add("awoke-bridge", "0.1.0", license="Apache-2.0", linked=["openssl-sys", "libz-sys"])
    found.add("openssl-sys", "0.9.118", built_with=["openssl-src"])
    found.add("openssl-src", "300.5.4+3.5.4", files={"openssl/VERSION.dat": "MAJOR=3\nMINOR=5\nPATCH=4\n"})
    found.add("libz-sys", "1.1.31+1", files={"src/zlib/zlib.h": '#define ZLIB_VERSION "1.3.2"'})
    return found


def components(bill: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in bill["components"]}


def test_libraries_are_named_with_version_and_the_name_of_the_weakness_lists(workspace: Workspace) -> None:
    found = components(sbom.bill(workspace.metadata, "1.95.0"))
    assert found["OpenSSL"]["version"] == "3.5.4"
    assert found["OpenSSL"]["cpe"] == "cpe:2.3:a:openssl:openssl:3.5.4:*:*:*:*:*:*:*"
    assert found["zlib"]["licenses"] == [{"expression": "Zlib"}]
    assert found["libz-sys"]["purl"] == "pkg:cargo/libz-sys@1.1.31%2B1"
    assert found["rust-std"]["version"] == "1.95.0"
    assert "openssl-src" not in found


def test_each_library_hangs_on_the_package_that_brings_it(workspace: Workspace) -> None:
    bill = sbom.bill(workspace.metadata, "1.95.0")
    edges = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert edges["pkg:pypi/awoke@0.1.0"] == ["pkg:cargo/awoke-bridge@0.1.0"]
    assert edges["pkg:cargo/openssl-sys@0.9.118"] == ["pkg:generic/openssl@3.5.4"]
    assert edges["pkg:cargo/libz-sys@1.1.31%2B1"] == ["pkg:generic/zlib@1.3.2"]
    known = {"pkg:pypi/awoke@0.1.0", *(each["bom-ref"] for each in bill["components"])}
    assert {ref for each in edges.values() for ref in each} <= known


def test_a_package_that_states_no_licence_is_refused(workspace: Workspace) -> None:
    workspace.metadata["packages"][1]["license"] = None
    with pytest.raises(Incomplete, match=r"openssl-sys 0\.9\.118 states no licence"):
        sbom.bill(workspace.metadata, "1.95.0")


def test_the_bill_of_this_checkout_is_the_same_each_time_and_names_every_library(tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        assert sbom.main(["--out", str(tmp_path / name / "awoke.cdx.json")]) == 0
        texts.append((tmp_path / name / "awoke.cdx.json").read_text())
    assert texts[0] == texts[1]
    assert str(Path.home()) not in texts[0]
    assert str(linked.REPOSITORY) not in texts[0]
    found = components(json.loads(texts[0]))
    assert found.keys() >= {place.name for place in linked.PLACES}
    assert found.keys() >= {"awoke-kafka", "pyo3", "rdkafka-sys"}
