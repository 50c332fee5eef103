"""`awoke asyncapi`: the document of an app, and the exit code of a breaking change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import awoke
from awoke.cli.main import command_line
from awoke.errors import ConfigError


def run(*words: str) -> Any:
    return CliRunner().invoke(command_line(["asyncapi"]), ["asyncapi", *words])


@pytest.fixture(autouse=True)
def app(monkeypatch: pytest.MonkeyPatch) -> awoke.App:
    app = awoke.App("shop", group="sellers")
    app.on("orders", value=dict[str, int])(lambda message: None)
    monkeypatch.setattr("awoke.app.application.find_app", lambda target: app)
    return app


def test_the_document_is_printed_as_json() -> None:
    document = json.loads(run("export", "shop:app", "--version", "1.2.0").output)
    assert (document["asyncapi"], document["info"]) == ("3.0.0", {"title": "shop", "version": "1.2.0"})
    assert list(document["operations"]) == ["receive_orders_sellers"]


def test_a_breaking_change_has_the_exit_code_1(tmp_path: Path, app: awoke.App) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(run("export", "shop:app").output)
    app.on("refunds")(lambda message: None)
    new.write_text(run("export", "shop:app").output)
    same, gone = run("diff", str(old), str(new)), run("diff", str(new), str(old))
    assert (same.exit_code, same.output.splitlines()) == (
        0,
        ["new: receive_refunds_sellers: the operation is new", "no breaking change"],
    )
    assert (gone.exit_code, gone.output.splitlines()) == (
        1,
        ["breaking: receive_refunds_sellers: the operation is gone", "1 breaking change"],
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("{", "is no JSON"), ('{"asyncapi": "2.6.0"}', "no document of AsyncAPI 3")],
)
def test_a_file_that_is_no_document_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "old.json"
    if content is not None:
        file.write_text(content)
    assert isinstance(refused := run("diff", str(file), str(file)).exception, ConfigError)
    assert said in str(refused)
