"""The commands for an app in this process: what they do, and the reason when they do nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke.operate.commands.views import StackOfThread
from awoke.swarm.app_commands import AppCommands, shortened, thread_of

PLACE: dict[str, Any] = {"topic": "orders", "partition": 3}


class FakeApp:
    """An app with one partition, whose messages at some offsets fail."""

    def __init__(self, *, is_assigned: bool = True, is_paused: bool = False, failing: tuple[int, ...] = ()) -> None:
        self._is_assigned, self._is_paused, self._failing = is_assigned, is_paused, list(failing)
        self.error: Exception | None = None
        self._runner: Any = None
        self.asked: list[tuple[Any, ...]] = []

    def is_assigned(self, topic: str, partition: int) -> bool:
        return self._is_assigned and (topic, partition) == ("orders", 3)

    def resume(self, *place: Any, group: str | None) -> bool:
        self._ask("resume", *place, group)
        return self._is_paused

    def skip(self, topic: str, partition: int, offset: int, *, group: str | None) -> bool:
        self._ask("skip", topic, partition, offset, group)
        return offset in self._failing

    def blocking(self, topic: str, partition: int, *, group: str | None) -> list[int]:
        return self._failing

    def threads(self) -> list[tuple[str, str, str]]:
        return [("orders[3]", "flush", "shop.py:7 in assigned"), ("", "MainThread", "")]

    def _ask(self, *question: Any) -> None:
        self.asked.append(question)
        if self.error is not None:
            raise self.error


def execute(app: FakeApp, name: str, **fields: Any) -> dict[str, Any]:
    return AppCommands(cast(awoke.App, app)).execute({"command": name, **fields})


@pytest.mark.parametrize("group", [None, "audit"])
def test_a_paused_partition_is_resumed(group: str | None) -> None:
    app = FakeApp(is_paused=True)
    assert execute(app, "resume", **PLACE, group=group) == {"done": "resume"}
    assert app.asked == [("resume", "orders", 3, group)]


def test_a_partition_that_needs_no_resume_is_told_so() -> None:
    assert execute(FakeApp(), "resume", **PLACE) == {"failed": "orders[3] is neither paused nor stuck"}


@pytest.mark.parametrize("command", [{"name": "resume"}, {"name": "skip", "offset": 7}])
def test_a_partition_of_another_process_is_told_so(command: dict[str, Any]) -> None:
    answer = execute(FakeApp(is_assigned=False), **command, **PLACE)
    assert answer == {
        "failed": "this process does not hold orders[3]: ask the process of the group that holds it",
    }


@pytest.mark.parametrize("group", [None, "audit"])
def test_a_message_that_fails_is_skipped(group: str | None) -> None:
    app = FakeApp(failing=(7, 9))
    assert execute(app, "skip", **PLACE, offset=9, group=group) == {"done": "skip"}
    assert app.asked == [("skip", "orders", 3, 9, group)]


@pytest.mark.parametrize(
    ("failing", "reason"),
    [((), "no message of orders[3] fails"), ((7, 9), "but by the messages at offsets 7, 9")],
)
def test_a_message_that_does_not_fail_is_not_skipped(failing: tuple[int, ...], reason: str) -> None:
    assert reason in execute(FakeApp(failing=failing), "skip", **PLACE, offset=8)["failed"]


@pytest.mark.parametrize("command", [{"name": "resume"}, {"name": "skip", "offset": 7}])
@pytest.mark.parametrize("error", [awoke.ClosedError("the app stops"), awoke.FencedError("taken away", "orders", 3)])
def test_an_app_that_stops_or_loses_the_partition_is_no_error(command: dict[str, Any], error: Exception) -> None:
    app = FakeApp(is_paused=True, failing=(7,))
    app.error = error
    assert "failed" in execute(app, **command, **PLACE)


def test_threads_are_told_with_owner_and_place() -> None:
    flush = {"owner": "orders[3]", "name": "flush", "started_at": "shop.py:7 in assigned"}
    main = {"owner": "", "name": "MainThread", "started_at": ""}
    assert execute(FakeApp(), "threads") == {"done": "threads", "threads": [flush, main]}
    assert thread_of(("", "MainThread", "")) == main


def test_stacks_of_a_process_are_told_and_recorded() -> None:
    app, stack = FakeApp(), StackOfThread(name="worker-1", owner="shop", lines=["a.py:1 in f"])
    assert execute(app, "stacks") == {"failed": "the app does not run"}
    records = list[Any]()
    commands = SimpleNamespace(actions=SimpleNamespace(stacks=lambda: [stack]), record=records.append)
    app._runner = SimpleNamespace(extension=lambda kind: commands)
    entry = {"name": "worker-1", "owner": "shop", "lines": ["a.py:1 in f"]}
    assert execute(app, "stacks", reason="it hangs") == {"done": "stacks", "text": "1 threads", "stacks": [entry]}
    assert [(each.verb, each.result, each.reason, each.text) for each in records] == [
        ("stacks", "done", "it hangs", "1 threads")
    ]


def test_stacks_that_are_too_large_lose_their_outermost_calls() -> None:
    lines = [f"{at:03} \u00e9" for at in range(100)]
    short, long = (StackOfThread(name="n", owner="o", lines=each) for each in (lines[:1], lines))
    found = shortened([short, long], 200)
    assert found[0] == short
    assert found[1].lines == lines[-len(found[1].lines) :]
    assert 5 < len(found[1].lines) < 20
    assert shortened([long]) == [long]


@pytest.mark.parametrize(
    ("command", "property"),
    [
        ({"command": "scale", "nodes": 3}, "command"),
        ({"command": ["resume"]}, "command"),
        ({}, "command"),
        ({"command": "resume", "topic": "", "partition": 3}, "topic"),
        ({"command": "resume", "topic": "orders", "partition": 3, "group": 7}, "group"),
        ({"command": "skip", "topic": "orders", "partition": 3, "offset": 1, "group": ""}, "group"),
        ({"command": "resume", "topic": "orders", "partition": "3"}, "partition"),
        ({"command": "skip", **PLACE}, "offset"),
    ],
)
def test_a_command_that_is_wrong_is_refused(command: dict[str, Any], property: str) -> None:
    app = FakeApp()
    with pytest.raises(awoke.ConfigError) as refused:
        AppCommands(cast(awoke.App, app)).execute(command)
    assert refused.value.property == property
    assert app.asked == []
