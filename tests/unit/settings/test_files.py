"""Files of settings: their order, their place, and librdkafka's properties in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.settings import files, load


def found_in(directory: Path) -> list[tuple[str, dict[str, Any]]]:
    return list(files(directory))


def test_a_directory_without_files_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").mkdir()
    assert found_in(tmp_path) == []
    assert found_in(tmp_path / "nowhere") == []


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_text("workers = 3\n", encoding="utf-8-sig")
    assert found_in(tmp_path) == [("awoke.toml", {"workers": 3})]


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_text("workers = 3\n", encoding="utf-16")
    with pytest.raises(ConfigError, match=r"awoke\.toml: is no TOML: it is not UTF-8; save it in that encoding"):
        found_in(tmp_path)


def test_the_file_of_awokes_own_comes_last_and_so_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.awoke]\nworkers = 2\n[tool.other]\nworkers = 9\n")
    (tmp_path / "awoke.toml").write_text("workers = 3\n")
    assert found_in(tmp_path) == [("pyproject.toml", {"workers": 2}), ("awoke.toml", {"workers": 3})]
    assert load({}, tmp_path).values.workers == 3


@pytest.mark.parametrize("text", ["", "[project]\nname = 'shop'\n", "[tool.other]\nworkers = 9\n", "[tool.awoke]\n"])
def test_a_project_without_settings_of_awokes_is_left_out(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert found_in(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "[kafka]\nlinger.ms = 5\nsasl.oauthbearer.token = 'x'\n",
        "[kafka]\n'linger.ms' = 5\n'sasl.oauthbearer.token' = 'x'\n",
        "[kafka.linger]\nms = 5\n[kafka.sasl.oauthbearer]\ntoken = 'x'\n",
    ],
)
def test_properties_of_librdkafka_have_their_names_in_whatever_way_toml_writes_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_text(text)
    assert found_in(tmp_path) == [("awoke.toml", {"kafka": {"linger.ms": 5, "sasl.oauthbearer.token": "x"}})]


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_text("workers = = 2")
    with pytest.raises(ConfigError, match=r"awoke\.toml"):
        load({}, tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", b"tool = 3\n"),
        ("pyproject.toml", b"[tool]\nawoke = 'shop'\n"),
        ("awoke.toml", b"group = '\xff'\n"),
    ],
)
def test_a_file_whose_settings_are_no_table_of_text_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")) as refused:
        found_in(tmp_path)
    assert refused.value.property == name


def test_a_file_is_read_as_utf_8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "awoke.toml").write_bytes("group = 'caf\u00e9'\n".encode())
    assert found_in(tmp_path) == [("awoke.toml", {"group": "caf\u00e9"})]
