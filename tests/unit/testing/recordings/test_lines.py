"""Files of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from awoke import ConfigError
from awoke.testing.recordings import lines
from awoke.testing.recordings.lines import read_lines, write_lines


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", [{"x": 1}], replaces=False)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_that_is_there_is_replaced_only_if_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ConfigError, match="say --overwrite"):
        write_lines(path, [1], replaces=False)
    assert path.read_text() == "old"
    write_lines(path, [1], replaces=True)
    assert path.read_text() == "1\n"


def test_nothing_is_left_if_a_document_fails(tmp_path: Path) -> None:
    def documents() -> Iterator[int]:
        yield 1
        raise KeyError

    with pytest.raises(KeyError):
        write_lines(tmp_path / "a", documents(), replaces=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        write_lines(tmp_path / "no" / "a", [], replaces=False)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "is empty"),
        ("junk\n", "line 1: JSON is malformed"),
        ("[]\n", "line 1: it is no JSON object"),
        ('{"kind": 2}\n', "line 1: expected a header"),
        ('{"kind": 1}\n{\n', "line 2"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "a"
    path.write_text(content)
    with pytest.raises(ConfigError, match=text):
        list(read_lines(path, "kind", 1))
    with pytest.raises(ConfigError, match="can't be read"):
        list(read_lines(tmp_path / "b", "kind", 1))


def test_lines_that_are_too_deep_or_have_no_end_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b'{"kind":1}\n{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    with pytest.raises(ConfigError, match="line 2: it is nested too deep"):
        list(read_lines(file, "kind", 1))
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 1_000)
    file.write_bytes(b'{"kind":1}\n{"x":"' + b"x" * 5_000)
    with pytest.raises(ConfigError, match="line 2: it has more than 1,000 bytes"):
        list(read_lines(file, "kind", 1))
