"""The first page: numbers of all processes, and the last five minutes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from awoke.console.views import History, Partition, Sample
from awoke.console.web.pages.overview import STEP_MS, added
from awoke.console.web.steps import Step, StepState
from awoke.operate.commands.views import SwarmNode
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import FakeLive, console, report


def test_the_first_page_adds_up_the_processes() -> None:
    at = Partition(group="shop", topic="orders", partition=0, in_flight=4, paused_because="a rule")
    with console(FakeLive([report("a", at), report("b", at, failures=3), report("c", at_ms=1)])) as client:
        page = client.get("/?format=json").json()
    names = ("processes", "silent", "in_flight", "paused", "failures", "lag")
    assert {name: page[name] for name in names} == {
        "processes": 2,
        "silent": 1,
        "in_flight": 8,
        "paused": 2,
        "failures": 3,
        "lag": None,
    }
    assert [each["kind"] for each in page["reasons"]] == ["paused", "paused"]


def test_samples_of_all_processes_are_added_without_the_incomplete_ones() -> None:
    now_ms = wall_ms() // STEP_MS * STEP_MS
    history = History(of_5_s=[Sample(now_ms - ago * STEP_MS, 10, 1, 5, 100) for ago in (90, 3, 0)])
    found = added([report("a", history=history), report("b", history=history)], now_ms)
    assert list(found.values()) == [Sample(0, 20, 2, 10, 200)]


def test_without_a_report_the_first_page_says_what_it_waits_for() -> None:
    live = FakeLive()
    since_ms = wall_ms() - 7_200_000
    fields: dict[str, Any] = {"text": "<b>127.0.0.1:9092", "since_ms": since_ms}
    live.steps = [
        Step(name="Brokers", state=StepState.DONE, ended_ms=since_ms + 1_500, **fields),
        Step(name="First report", state=StepState.WAITING, **fields),
    ]
    with console(live) as client:
        page, found = client.get("/").text, client.get("/?format=json").json()
        assert found["is_waiting"]
        assert [(each["name"], each["state"]) for each in found["steps"]] == [
            ("Brokers", "done"),
            ("First report", "waiting"),
        ]
        for text in ("Waiting for shop", "after 1.5 s", "since <time", ">2 h<", "&lt;b&gt;127.0.0.1", 'content="2"'):
            assert text in page
        assert "The last five minutes" not in page

        live.add(report("a"))
        page, found = client.get("/").text, client.get("/?format=json").json()
        assert (found["is_waiting"], found["steps"]) == (False, [])
        for text in ("<h1>Overview</h1>", "The last five minutes", 'content="10"'):
            assert text in page


def test_reports_that_are_still_being_read_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    live = FakeLive([report("a")])
    known = live.snapshot()
    monkeypatch.setattr(live, "snapshot", lambda within_s=0.0: replace(known, is_read=False))
    with console(live) as client:
        assert client.get("/?format=json").json()["problem"] == "The reports are still being read."


def test_a_node_that_has_not_reported_is_awaited_unless_it_ends() -> None:
    swarm = [
        SwarmNode(node=number, state=state, restarts=0, last_error="")
        for number, state in ((1, "up"), (2, "booting"), (3, "stopping"))
    ]
    first = report("a", number=1, supervisor_pid=77, swarm=swarm)
    with console(FakeLive([first])) as client:
        page, (awaited,) = client.get("/").text, client.get("/?format=json").json()["awaited"]
        assert awaited == {"host": "host", "supervisor_pid": 77, "node": 2, "state": "booting"}
        assert "Node 2 of the swarm 77 on host has not reported yet" in page
    with console(FakeLive([first, report("b", number=2, supervisor_pid=77)])) as client:
        assert client.get("/?format=json").json()["awaited"] == []
