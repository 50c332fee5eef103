"""Processes: states, newer ones, settings that differ, a process that is gone."""

from __future__ import annotations

from awoke.console.views import Memory, SettingView
from awoke.console.web.grants import Role
from awoke.console.web.pages.processes import grouped, settings_of
from awoke.operate.commands.views import SwarmNode
from awoke.waiting.clock import wall_ms
from tests.unit.console.web.fakes import HOSTILE, FakeLive, console, report


def test_silent_and_newer_processes_are_told_from_running_ones() -> None:
    live = FakeLive([report("a"), report("b", at_ms=1), report("c", major=9)])
    with console(live) as client:
        page = client.get("/processes?format=json").json()
        assert client.get("/processes/c").status_code == 200
    assert [each["state"] for each in page["processes"]["rows"]] == ["running", "silent", "newer node"]


def test_a_process_that_is_gone_is_not_found() -> None:
    with console() as client:
        assert (client.get("/processes/host.1").status_code, client.get("/processes/x").status_code) == (200, 404)


def test_a_setting_that_differs_names_its_processes() -> None:
    found = grouped({"a": {"workers": "1", "group": "g"}, "b": {"workers": "2", "group": "g"}})
    assert [(each.name, each.value, each.nodes, each.differs) for each in found] == [
        ("group", "g", ["a", "b"], False),
        ("workers", "1", ["a"], True),
        ("workers", "2", ["b"], True),
    ]


def test_a_setting_names_its_origins() -> None:
    said = [
        SettingView(name="workers", value="2", origin=origin) for origin in ("environment", "argument", "environment")
    ]
    reports = [report(node, explained=[each]) for node, each in zip("abc", said, strict=True)]
    older = report("d", settings={"group": "g"})
    found = {each.name: each.origins for each in settings_of([*reports, older])}
    assert found == {"workers": ["argument", "environment"], "group": []}
    with console(FakeLive(reports)) as client:
        assert "argument, environment" in client.get("/settings").text
        assert "from argument" in client.get("/processes/b").text


def test_own_and_shared_memory_are_shown_and_shared_pages_count_once_for_a_host() -> None:
    memory = Memory(own_bytes=10 << 20, shared_bytes=40 << 20, proportional_bytes=30 << 20)
    nodes = [report(name, memory_bytes=50 << 20, memory=memory) for name in "ab"]
    with console(FakeLive([*nodes, report("old", memory_bytes=7 << 20)])) as client:
        found = client.get("/processes?format=json").json()
        assert [each["memory_bytes"] >> 20 for each in found["hosts"]] == [67]
        assert "10 MB own" in client.get("/processes").text
        assert "10 MB own, 42 MB shared" in client.get("/processes/a").text
        assert "own" not in client.get("/processes/old").text.partition("Memory")[2][:80]


def test_a_swarm_is_a_tree_with_restarts_and_their_reason() -> None:
    old = [SwarmNode(node=0, state="running", restarts=0, last_error="")]
    new = [SwarmNode(node=1, state=HOSTILE, restarts=3, last_error=HOSTILE), *old]
    now_ms = wall_ms()
    reports = [
        report("a", number=0, supervisor_pid=7, swarm=old, at_ms=now_ms - 1),
        report("b", number=2, supervisor_pid=7, swarm=new, at_ms=now_ms),
        report("c"),
    ]
    with console(FakeLive(reports)) as client:
        (host,) = client.get("/processes?format=json").json()["hosts"]
        page = client.get("/processes").text
    (swarm,) = host["swarms"]
    assert swarm["supervisor_pid"] == 7
    assert [(each["said"]["restarts"], each["process"]) for each in swarm["nodes"]] == [(0, "a"), (3, None)]
    assert [each["node"] for each in host["alone"]] == ["b", "c"]
    assert "3 restarts" in page
    assert "<script>alert" not in page


def test_threads_are_counted_by_owner_and_a_process_that_takes_the_command_shows_its_stacks() -> None:
    some, other = {"worker": 2, "librdkafka": 5}, {"worker": 1}
    live = FakeLive([report("a.1", threads=some, commands=["stacks"]), report("b.1", threads=other)])
    with console(live, policy=lambda scope: Role.OPERATE, verbs=["stacks"]) as client:
        page = client.get("/threads").text
        found = client.get("/threads?format=json").json()
    assert found["owners"] == {"librdkafka": 5, "worker": 3}
    assert [(each["node"], each["count"]) for each in found["threads"]["rows"]] == [("a.1", 7), ("b.1", 1)]
    assert page.count('action="/commands/stacks"') == 1
    assert 'name="back" value="/threads"' in page
