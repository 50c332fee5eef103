"""Sources of Protobuf files: the compiler, its bounds, and the files that it may see."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from awoke.payloads.decoding import protobuf_sources
from awoke.payloads.decoding.protobuf_sources import OWN_NAME, NotCompiled, compiled, find_compiler

ORDER = 'syntax = "proto3"; import "shop/item.proto"; message Order { Item item = 1; }'
ITEM = 'syntax = "proto3"; import public "google/protobuf/timestamp.proto"; message Item {}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_each_file_comes_after_those_that_it_imports_and_nothing_is_left_behind(folder: Path) -> None:
    found = compiled({OWN_NAME: ORDER, "shop/item.proto": ITEM}, [])
    assert [each.name for each in found] == ["google/protobuf/timestamp.proto", "shop/item.proto", OWN_NAME]
    assert list(folder.iterdir()) == []


def reason(source: str, **others: str) -> str:
    """Returns why a source is not compiled."""
    with pytest.raises(NotCompiled) as caught:
        compiled({OWN_NAME: source, **others}, [])
    return str(caught.value)


@pytest.mark.parametrize("name", ["/etc/hosts", "../place.proto", "missing.proto", "./described", "described"])
def test_an_import_is_a_reference_or_is_not_found(name: str, folder: Path) -> None:
    (folder / "place.proto").write_text(ITEM)
    assert reason(f'import "{name}";').startswith(f" and does not compile: {name}: ")


def test_a_file_beside_those_of_the_compiler_is_not_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_compiler()
    assert compiler is not None
    beside = folder / "installed/include"
    (beside / "google").mkdir(parents=True)
    (beside / "google/protobuf").symlink_to(compiler.parent.parent / "include/google/protobuf")
    (beside / "other.proto").write_text('syntax = "proto3"; message Other {}')
    (folder / "installed/bin").mkdir()
    copied = folder / "installed/bin/protoc"
    copied.write_bytes(compiler.read_bytes())
    copied.chmod(0o700)
    monkeypatch.setattr(protobuf_sources, "find_compiler", lambda: copied)
    text = reason('syntax = "proto3"; import "other.proto"; message Order { Other other = 1; }')
    assert text == " and imports 'other.proto', which is not among the references of the schema"


@pytest.mark.parametrize("name", ["../a.proto", "/a.proto", "-a.proto", "@a.proto", "a//b.proto", "a", "a.proto\n"])
def test_a_name_that_is_a_file_elsewhere_or_an_option_is_refused(name: str) -> None:
    with pytest.raises(NotCompiled, match=r"which is no name of a \.proto file"):
        compiled({OWN_NAME: ORDER, name: ITEM}, [])


def test_a_long_source_is_not_compiled() -> None:
    assert reason(ORDER + " " * 1_000_000).startswith(" of 1,000,077 characters with its references; at most 1,000,000")


def test_the_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_sources, "TIME_S_MAX", 0.01)
    assert reason("}" * 500_000) == " and does not compile: that takes more than 0.01 s"


@pytest.mark.parametrize("bound", ["MEMORY_BYTES_MAX", "OUTPUT_BYTES_MAX"])
def test_memory_and_output_are_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_sources, bound, 20_000_000 if bound == "MEMORY_BYTES_MAX" else 100_000)
    monkeypatch.setattr(protobuf_sources, "TIME_S_MAX", 60)
    messages = "".join(f"message A{number} {{ int32 a = 1; }}" for number in range(20_000))
    assert reason(f'syntax = "proto3"; {messages}').startswith(
        " and does not compile: the compiler ended with status -"
    )


def test_no_part_of_a_source_controls_a_terminal_or_is_long() -> None:
    text = reason(f"message A {{ required {'B' * 1_000} b = 1; }}")
    assert len(text) < 250
    assert text.isprintable()


def test_a_compiler_that_does_not_run_is_a_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_sources, "find_compiler", lambda: folder / "no-protoc")
    assert reason(ORDER).startswith(", and its compiler does not run: ")


def test_a_name_that_is_a_file_and_a_folder_is_a_reason() -> None:
    with pytest.raises(NotCompiled, match="Errno"):
        compiled({OWN_NAME: ORDER, "a.proto": ITEM, "a.proto/b.proto": ITEM}, [])
