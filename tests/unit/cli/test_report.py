"""`awoke report`: output for people and for programs, with hostile text made visible."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from awoke.cli.main import command_line
from awoke.console import state
from awoke.console.views import AppView, GroupPartition, GroupView, NodeView, Reason
from awoke.operate.commands.views import MAJOR
from tests.unit.console.test_state import record, report

HOSTILE = "\x1b[2J\nno member: shop"


def view() -> AppView:
    document = msgspec.Raw(msgspec.json.encode(report()))
    known = NodeView(node="host.1", at_ms=1, is_newer=False, is_silent=False, document=document)
    sent = msgspec.Raw(msgspec.json.encode({"major": MAJOR + 1}))
    newer = NodeView(node="host.2", at_ms=1, is_newer=True, is_silent=False, document=sent)
    at = GroupPartition(topic="orders", partition=3, committed=4, end_offset=9, lag=5)
    failures = state.State("shop")
    failures.on_error(_message(record("aa", 1)))
    return AppView(
        app="shop",
        at_ms=2_000,
        nodes=[known, newer],
        groups=[GroupView(group="shop", state="Stable", members=1, partitions=[at])],
        errors=failures.errors(),
        unreadable=1,
        reasons=[Reason(kind="paused", severity=60, text=f"orders[3]: {HOSTILE}", advice="resume it")],
    )


def _message(value: Any) -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(key=b"", value=msgspec.json.encode(value))


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    monkeypatch.setattr(state, "read_view", lambda app, settings, timeout_s: view())
    done = CliRunner().invoke(command_line(["report"]), ["report", "shop", *options], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_people_see_the_reasons_the_processes_and_the_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(monkeypatch).splitlines()
    assert lines[0].startswith("paused: orders[3]")
    text = "\n".join(lines)
    assert "newer node" in text
    assert all(word in text for word in ("host.1", "running", "orders", "ValueError", "1 records could not be read"))


def test_programs_get_the_whole_state_as_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    document = msgspec.json.decode(run(monkeypatch, "--json"))
    assert document["reasons"][0]["text"] == f"orders[3]: {HOSTILE}"
    assert document["groups"][0]["partitions"][0]["lag"] == 5


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_hostile_text_controls_no_terminal(monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    output = run(monkeypatch, *options)
    assert "\x1b" not in output
    assert not any(line.startswith("no member") for line in output.splitlines())
