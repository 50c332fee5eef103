"""The list of what is inside the extension module leaves out what only builds it."""

from __future__ import annotations

from pathlib import Path

import pytest

import linked
from linked import Incomplete
from tests.unit.packaging.cargo import Workspace


def test_macros_and_their_dependencies_and_build_scripts_are_not_linked(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.add("awoke-bridge", linked=["pyo3", "a-macro"], built_with=["cc"])
    workspace.add("pyo3", linked=["libc"])
    workspace.add("libc")
    workspace.add("a-macro", linked=["syn"], targets=[{"kind": ["proc-macro"]}])
    workspace.add("syn")
    workspace.add("cc")
    workspace.add("loom")

    assert [each.name for each in linked.linked_packages(workspace.metadata)] == ["awoke-bridge", "libc", "pyo3"]


def test_an_old_form_of_a_licence_becomes_an_spdx_expression(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.add("awoke-bridge", license="MIT/Apache-2.0")

    assert [each.license for each in linked.linked_packages(workspace.metadata)] == ["MIT OR Apache-2.0"]


def test_a_library_is_found_in_a_package_that_only_builds_it(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.add("awoke-bridge", linked=["openssl-sys"])
    workspace.add("openssl-sys", built_with=["openssl-src"])
    workspace.add("openssl-src", files={"openssl/VERSION.dat": "MAJOR=3\nMINOR=5\nPATCH=4\n"})

    (found,) = linked.libraries(workspace.metadata)
    assert (found.name, found.version, found.license) == ("OpenSSL", "3.5.4", "Apache-2.0")


def test_the_system_s_openssl_is_no_part_of_the_module(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.add("awoke-bridge", linked=["openssl-sys"])
    workspace.add("openssl-sys")

    assert list(linked.libraries(workspace.metadata)) == []


@pytest.mark.parametrize(("features", "version"), [([], "3.3.2"), (["v2"], "2.3.2")])
def test_the_version_of_mimalloc_is_that_of_the_line_that_is_built(
    tmp_path: Path, features: list[str], version: str
) -> None:
    workspace = Workspace(tmp_path)
    workspace.add("awoke-bridge", linked=["libmimalloc-sys"])
    header, text = "c_src/mimalloc/{}/include/mimalloc.h", "#define MI_MALLOC_VERSION {} // two digits each"
    files = {header.format("v3"): text.format(30302), header.format("v2"): text.format(20302)}
    workspace.add("libmimalloc-sys", files=files)
    workspace.metadata["resolve"]["nodes"][1]["features"] = features

    assert [each.version for each in linked.libraries(workspace.metadata)] == [version]


@pytest.mark.parametrize(
    ("name", "version", "files"),
    [("libz-sys", "1.0.0", {"src/zlib/zlib.h": "no number"}), ("rdkafka-sys", "4.10.0", {})],
)
def test_a_library_without_a_version_is_refused(tmp_path: Path, name: str, version: str, files: dict[str, str]) -> None:
    workspace = Workspace(tmp_path)
    workspace.add("awoke-bridge", linked=[name])
    workspace.add(name, version, files=files)

    with pytest.raises(Incomplete, match=f"{name} {version}"):
        list(linked.libraries(workspace.metadata))
