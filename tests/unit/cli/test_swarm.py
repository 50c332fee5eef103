"""The commands for a running swarm, as they are shown."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from typer.testing import CliRunner

import awoke
from awoke.cli import swarm
from awoke.cli.main import command_line
from awoke.cli.swarm import COLUMNS, ask, node_row, nothing_there, step_of
from awoke.cli.tables import aligned
from tests.support.waiting import WITHIN_S
from tests.unit.cli.fakes import run


def test_the_status_of_large_swarms_fits_80_columns() -> None:
    node = {"node": 12, "pid": 4_194_304, "state": "stopping", "is_quiet": False, "memory_bytes": 9_999 << 20}
    more = {"oldest_job_s": 299.9, "assigned": 1_000, "lag": 123_456_789, "restarts": 1_000, "uptime_s": 86_399.0}
    lines = aligned([COLUMNS, node_row({**node, **more})])
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == [
        *("12", "4194304", "stopping", "9999", "5", "min", "1000", "123456789", "1000", "1", "d")
    ]


def test_a_target_without_a_colon_is_explained() -> None:
    with pytest.raises(awoke.ConfigError, match="'shop' names no app; pass MODULE:APP, as in shop:app"):
        ask("shop", None, "resume", topic="t", partition=1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The commands that a supervisor gets; it answers with `STATUS`."""
    asked: list[tuple[Any, ...]] = []

    def answer(target: str, socket: str | None, command: str, **fields: Any) -> dict[str, Any]:
        asked.append((target, socket, command, fields))
        return STATUS

    monkeypatch.setattr(swarm, "ask", answer)
    return asked


NODE: dict[str, Any] = {
    "node": 0,
    "pid": 7,
    "state": "up",
    "is_quiet": False,
    "memory_bytes": 5 << 20,
    "oldest_job_s": 0,
    "assigned": 2,
    "lag": None,
    "restarts": 0,
    "uptime_s": 60.0,
    "last_error": "",
}
STATUS: dict[str, Any] = {
    "target": "shop:app",
    "pid": 6,
    "uptime_s": 120.0,
    "is_quiet": False,
    "mold_state": "ready",
    "mold_error": "",
    "mold_retry_in_s": 0.0,
    "reload": {"state": "idle", "node": None, "last_error": ""},
    "nodes": [NODE, {**NODE, "node": 1, "pid": None, "state": "starting", "last_error": "it died\x1b"}],
}


@pytest.mark.parametrize(
    ("words", "command", "fields"),
    [
        (["stop", "shop:app"], "stop", {}),
        (["quiet", "shop:app"], "quiet", {}),
        (["reload", "shop:app"], "reload", {"within_s": 600.0}),
        (["reload", "shop:app", "--timeout-s", "5"], "reload", {"within_s": 5.0}),
        (["scale", "shop:app", "3"], "scale", {"nodes": 3}),
        (["dump", "shop:app", "1"], "dump", {"node": 1}),
        (["resume", "shop:app", "orders", "2"], "resume", {"topic": "orders", "partition": 2, "group": None}),
        (
            ["resume", "shop:app", "orders", "2", "--group", "audit"],
            "resume",
            {"topic": "orders", "partition": 2, "group": "audit"},
        ),
        (
            ["skip", "shop:app", "orders", "2", "7", "--group", "audit"],
            "skip",
            {"topic": "orders", "partition": 2, "offset": 7, "group": "audit"},
        ),
    ],
)
def test_a_command_asks_the_process_of_its_target(
    words: list[str], command: str, fields: dict[str, Any], asked: list[tuple[Any, ...]]
) -> None:
    assert run(*words, "--socket", "/s").exit_code == 0
    assert asked == [("shop:app", "/s", command, fields)]


@pytest.mark.parametrize("words", [["stop"], ["quiet"], ["reload"], ["scale", "3"], ["dump", "1"]], ids=" ".join)
def test_a_success_is_one_line_or_none(words: list[str], asked: list[tuple[Any, ...]]) -> None:
    words.insert(1, "shop:app")
    done = CliRunner().invoke(command_line(words), words)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ("reloading shop:app: importing the app\n" if words[0] == "reload" else "")
    assert run(*words, "--quiet").output == ""


def test_a_partition_that_goes_on_is_named(asked: list[tuple[Any, ...]]) -> None:
    assert run("resume", "shop:app", "orders", "2").output == "resumed orders[2]\n"
    assert run("skip", "shop:app", "orders", "2", "7").output == "orders[2] continues after offset 7\n"


def test_a_status_has_a_line_for_each_node_and_the_last_errors(asked: list[tuple[Any, ...]]) -> None:
    first, names, *rows, error = run("status", "shop:app").output.splitlines()
    assert first == "shop:app: supervisor 6, up 2 min"
    assert names.split() == " ".join(COLUMNS).split()
    assert [row.split()[:4] for row in rows] == [["0", "7", "up", "5"], ["1", "-", "starting", "5"]]
    assert error == r"node 1: it died\x1b"
    assert json.loads(run("status", "shop:app", "--json").output) == STATUS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_quiet": True}, "quiet: no new jobs begin; a reload ends it"),
        (
            {"mold_state": "waiting", "mold_error": "no module", "mold_retry_in_s": 4.2},
            "no mold: no module; another one is made in 4.2 s",
        ),
        ({"mold_state": "importing"}, "no mold yet: it imports the app"),
        (
            {"mold_state": "importing", "mold_error": "no module"},
            "no mold yet: it imports the app; the one before: no module",
        ),
        ({"reload": {"state": "replacing", "node": 1, "last_error": ""}}, "reload: replacing, node 1"),
        ({"reload": {"state": "importing", "node": None, "last_error": ""}}, "reload: importing"),
        ({"reload": {"state": "idle", "node": None, "last_error": "no module"}}, "the last reload failed: no module"),
    ],
)
def test_a_status_remarks_what_is_not_as_usual(
    changes: dict[str, Any], said: str, asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = run("status", "shop:app").output.splitlines()
    monkeypatch.setitem(globals(), "STATUS", {**STATUS, **changes})
    assert [line for line in run("status", "shop:app").output.splitlines() if line not in usual] == [said]


def test_a_node_that_is_up_and_quiet_is_quiet() -> None:
    assert node_row({**NODE, "is_quiet": True})[2] == "quiet"
    assert node_row({**NODE, "is_quiet": True, "state": "stopping"})[2] == "stopping"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("status", "no swarm of shop:app .*--nodes$"),
        ("resume", "no process or swarm of shop:app .*awoke run shop:app$"),
    ],
)
def test_a_process_that_is_not_there_is_named_with_the_way_to_start_it(command: str, said: str) -> None:
    with pytest.raises(awoke.ConfigError, match=said):
        ask("shop:app", "/proc/nowhere.sock", command)
    text = nothing_there("shop:app", "/s", command, "no reason")
    assert " listens at /s: no reason; " in text


def test_a_reload_tells_the_node_that_is_being_replaced() -> None:
    nodes = [{"node": 1}, {"node": 3}]
    assert step_of({"reload": {"node": 3}, "nodes": nodes}) == "replacing node 3 (2 of 2)"
    assert step_of({"reload": {"node": None}, "nodes": nodes}) == ""


def test_a_reload_that_takes_long_writes_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_all, told = threading.Event(), list[int | None]()
    states = iter([None, 0, 0])

    def answer(target: str, socket: str | None, command: str, **fields: Any) -> dict[str, Any]:
        if command == "status":
            node = next(states, None)
            if node is None and told:
                asked_all.set()
            told.append(node)
            return {**STATUS, "reload": {**STATUS["reload"], "node": node}}
        assert asked_all.wait(WITHIN_S)
        return {"text": "every node runs the new code"}

    monkeypatch.setattr(swarm, "ask", answer)
    monkeypatch.setattr(swarm, "REFRESH_S", 0.001)
    done = CliRunner().invoke(command_line(["reload"]), ["reload", "shop:app"])
    assert done.stdout == "every node runs the new code\n"
    assert done.stderr.splitlines() == ["reloading shop:app: importing the app", "replacing node 0 (1 of 2)"]
