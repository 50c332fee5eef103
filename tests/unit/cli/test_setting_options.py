"""Options that are settings: names, types, texts and defaults come from the settings' table."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from awoke.cli.main import command_line
from awoke.cli.run import option, takes_run_settings, texts_of, type_of
from awoke.settings import RunSettings, Settings
from tests.unit.cli.test_commands import help_of


@pytest.mark.parametrize("name", RunSettings.__struct_fields__)
def test_each_setting_of_a_run_is_an_option_with_its_text(name: str) -> None:
    text = " ".join(help_of("run").split())
    assert f"--{name.replace('_', '-')}" in text
    assert texts_of(RunSettings)[name]


@pytest.mark.parametrize("kind", [Settings, RunSettings])
def test_each_setting_has_a_text(kind: type[Settings] | type[RunSettings]) -> None:
    assert set(texts_of(kind)) == set(kind.__struct_fields__)


def test_defaults_are_those_of_the_settings() -> None:
    text = " ".join(help_of("run").split())
    for shown in ("console", "300", "35", "5", "true"):
        assert f"(default: {shown})" in text
    assert "None" not in text


def test_help_names_every_option_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ["run", "--help"]
    shown = CliRunner().invoke(command_line(words), words).output
    for name in ("--memory-hard-limit", "--restart-backoff-s", "--bootstrap-servers", "--drain-timeout-s"):
        assert name in shown
    assert "…" not in shown


@pytest.mark.parametrize(
    ("kind", "name", "shown"),
    [
        (RunSettings, "log_format", "console"),
        (RunSettings, "hang_after_s", "300"),
        (RunSettings, "static_members", "true"),
        (RunSettings, "nodes", False),
        (Settings, "workers", False),
        (Settings, "commit_interval_s", "1"),
    ],
)
def test_an_option_shows_the_default_of_its_setting(kind: Any, name: str, shown: str | bool) -> None:
    assert option(kind, name).show_default == shown


def test_a_text_has_neither_markup_nor_none() -> None:
    assert "`" not in option(Settings, "metrics_port").help
    assert "None" not in option(Settings, "workers").help
    assert option(Settings, "workers").help.startswith("Threads that run handlers; unset for 4")
    assert option(RunSettings, "static_members").help.startswith("Each node keeps its name")


def test_a_port_is_bounded() -> None:
    port = option(Settings, "metrics_port")
    assert (port.min, port.max) == (0, 65_535)
    assert option(Settings, "workers").max is None


@pytest.mark.parametrize(
    ("annotation", "expected"), [(int, int), (int | None, int), (Literal["text", "json"], str), (bool, bool)]
)
def test_an_option_has_the_type_of_its_setting_and_may_be_left_out(annotation: Any, expected: type) -> None:
    assert type_of(annotation) is expected


def test_a_command_gets_an_option_for_each_setting_behind_its_own() -> None:
    @takes_run_settings
    def command(target: str, workers: int | None = None, **given: Any) -> None: ...

    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["target", "workers", *RunSettings.__struct_fields__]
    assert all(parameters[name].default is None for name in RunSettings.__struct_fields__)
    assert set(command.__annotations__) == set(parameters)
