"""The notices have a text for each part of the extension module, or there are none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import linked
import notices
from linked import Incomplete
from tests.unit.packaging.cargo import Workspace

MIT = "MIT License\n\nCopyright (c) 2020 Somebody\n\nPermission is hereby granted, free of charge, to all."


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.add("awoke-bridge", linked=["subtle", "sha2", "rdkafka-sys"], files={})
    return found


def test_a_text_that_two_parts_share_is_there_once_with_both_names(workspace: Workspace) -> None:
    workspace.add("subtle", "2.6.1", files={"LICENSE-MIT": MIT, "README.md": "no licence"})
    workspace.add("sha2", "0.10.9", files={"LICENSE-MIT": MIT.replace("\n\n", "\n"), "NOTICE": "Made by them."})
    workspace.add("rdkafka-sys", "4.10.0+2.12.1", files=librdkafka())

    text = notices.document(notices.parts_of(workspace.metadata), "1.95.0")
    assert text.count("Permission is hereby granted") == 1
    assert "sha2 0.10.9, subtle 2.6.1" in text.splitlines()
    assert "Made by them." in text
    assert "no licence" not in text
    assert "librdkafka 2.12.1: BSD-2-Clause" in text.splitlines()
    assert "all of librdkafka" in text
    assert "awoke-bridge" not in text


def librdkafka() -> dict[str, str]:
    version = "\n".join(f"#define LZ4_VERSION_{name} 1" for name in ("MAJOR", "MINOR", "RELEASE"))
    return {
        "LICENSE": "its bindings",
        "librdkafka/LICENSES.txt": "all of librdkafka",
        "librdkafka/LICENSE.lz4": "LZ4's",
        "librdkafka/src/lz4.h": version,
    }


@pytest.mark.parametrize("license", ["MIT", "MIT OR Apache-2.0"])
def test_a_package_without_a_text_has_that_of_its_manifest(workspace: Workspace, license: str) -> None:
    workspace.add("subtle", files={"LICENSE": MIT})
    workspace.add("sha2")
    bindings = {name: text for name, text in librdkafka().items() if name != "LICENSE"}
    workspace.add("rdkafka-sys", "4.10.0+2.12.1", license=license, files=bindings, authors=["A. Writer"])

    (part,) = (each for each in notices.parts_of(workspace.metadata) if each.name == "rdkafka-sys")
    assert part.texts[0].startswith("Copyright (c) A. Writer\n")
    assert part.texts[0].endswith("Permission is hereby granted, free of charge, to all.")
    assert "Somebody" not in part.texts[0]


@pytest.mark.parametrize(
    ("license", "authors"), [("MIT", []), ("BSD-3-Clause", ["A. Writer"]), ("MIT AND Apache-2.0", ["A. Writer"])]
)
def test_a_package_without_a_licence_is_refused_by_name(workspace: Workspace, license: str, authors: list[str]) -> None:
    workspace.add("subtle", files={"LICENSE": MIT})
    workspace.add("sha2", "0.10.9", license=license, files={}, authors=authors)
    workspace.add("rdkafka-sys", "4.10.0+2.12.1", files=librdkafka())

    with pytest.raises(Incomplete, match=r"sha2 0\.10\.9 .*has no licence"):
        notices.parts_of(workspace.metadata)


@pytest.mark.parametrize("text", [None, " \n"])
def test_a_c_library_without_a_licence_is_refused_by_name(workspace: Workspace, text: str | None) -> None:
    workspace.add("subtle")
    workspace.add("sha2")
    folder = workspace.add("rdkafka-sys", "4.10.0+2.12.1", files=librdkafka())
    file = folder / "librdkafka" / "LICENSE.lz4"
    file.unlink() if text is None else file.write_text(text)

    with pytest.raises(Incomplete, match=r"LZ4 1\.1\.1 has no licence: .*LICENSE\.lz4"):
        notices.parts_of(workspace.metadata)


def test_the_command_ends_with_1_and_no_file_if_a_licence_is_missing(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("subtle", "sha2", "rdkafka-sys"):
        workspace.add(name, files={})
    monkeypatch.setattr(notices, "metadata_of", lambda target: workspace.metadata)

    assert notices.main(["--out", str(tmp_path / "out")]) == 1
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_notices_of_this_checkout_name_every_library(tmp_path: Path) -> None:
    assert notices.main(["--out", str(tmp_path)]) == 0
    lines = (tmp_path / notices.FILE).read_text().splitlines()
    for place in linked.PLACES:
        assert any(line.startswith(f"{place.name} ") and line.endswith(f": {place.license}") for line in lines)
    assert any(line.startswith("pyo3 ") for line in lines)
