"""Molds that fail, hang or can't be started."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import cast

import pytest

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.swarm.mold_control import MoldControl
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd
from awoke.text import exit_codes
from tests.unit.swarm.fakes import OPTIONS, FakePidfd


class Timer(Enum):
    """The deadline of a test."""

    TEST = auto()


TEST = Deadline(Timer.TEST)


class FakeSupervisor:
    """The host of molds: remembers what they tell it."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.has_nodes, self.wanted = False, 0

    def on_mold_ready(self, mold: MoldHandle) -> None:
        self.heard.append("ready")

    def on_forked(self, mold: MoldHandle, number: int, pidfd: Pidfd) -> None:
        self.heard.append(f"forked {number}")

    def on_not_forked(self, mold: MoldHandle, number: int, why: str) -> None:
        self.heard.append(f"not forked {number}: {why}")

    def on_candidate_failed(self, why: str) -> None:
        self.heard.append(f"candidate failed: {why}")

    def on_mold_over(self, mold: MoldHandle) -> None:
        self.heard.append("over")

    def has_running_nodes(self) -> bool:
        return self.has_nodes

    def wanted_nodes(self) -> int:
        return self.wanted

    def end_swarm(self, code: int) -> None:
        self.heard.append(f"end swarm: {code}")


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def turn_until(loop: Loop, host: FakeSupervisor, word: str) -> None:
    loop.deadlines.set(TEST, 20.0, lambda: pytest.fail(f"no {word!r} in {host.heard}"))
    while not any(each.startswith(word) for each in host.heard):
        loop.turn()
    loop.deadlines.cancel(TEST)


def test_a_mold_that_is_stopped_while_it_imports_is_killed_at_its_deadline(loop: Loop) -> None:
    host = FakeSupervisor()
    options = SwarmOptions(target="no_such_module:app", nodes=1, socket="s", boot_timeout_s=0.01)
    molds = MoldControl(options, loop, host)
    molds.make()
    (pid,) = molds.pids()
    os.kill(pid, signal.SIGSTOP)
    turn_until(loop, host, "over")
    assert host.heard == [f"end swarm: {exit_codes.EXIT_FAILED}", "over"]
    assert molds.pids() == set()
    assert "did not import the app" in molds.last_error


def test_a_mold_whose_app_is_refused_is_made_again_while_a_node_runs(loop: Loop) -> None:
    host = FakeSupervisor()
    molds = MoldControl(SwarmOptions(target="no_such_module:app", nodes=1, socket="s"), loop, host)
    molds._policy.on_ready()
    host.has_nodes = True
    molds.make()
    turn_until(loop, host, "over")
    assert host.heard == ["over"]
    assert molds.status()["mold_state"] == "waiting"
    assert "no_such_module" in molds.status()["mold_error"]
    host.has_nodes = False
    molds.make_at_once()
    turn_until(loop, host, "end swarm: 78")


@pytest.mark.parametrize(("nodes", "wanted", "end"), [(1, 0, "ready"), (2, 0, "over"), (1, 3, "over"), (3, 1, "ready")])
def test_an_app_for_one_node_is_refused_where_several_are_to_run(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int, wanted: int, end: str
) -> None:
    """Before the first node runs, the option tells their number."""
    (tmp_path / "naming.py").write_text(
        "import awoke\napp = awoke.App('shop')\n"
        "@app.on('orders', partitions=[0, 3])\ndef handle(message: awoke.Message[bytes]) -> None: ...\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    host = FakeSupervisor()
    host.wanted = wanted
    molds = MoldControl(SwarmOptions(target="naming:app", nodes=nodes, socket="s"), loop, host)
    molds.make()
    turn_until(loop, host, end)
    if end == "over":
        text = f"{wanted or nodes} nodes can't run the app"
        assert text in molds.status()["mold_error"]
    molds.close()
    while molds.pids():
        loop.turn()


def test_a_candidate_that_fails_changes_nothing(loop: Loop) -> None:
    host = FakeSupervisor()
    molds = MoldControl(SwarmOptions(target="no_such_module:app", nodes=1, socket="s"), loop, host)
    molds.current = MoldHandle(0, cast(Pidfd, FakePidfd()), socket.socket())
    molds.make_candidate()
    turn_until(loop, host, "over")
    assert host.heard[0].startswith("candidate failed: ")
    assert molds.candidate is None
    assert molds.current.generation == 0
    molds.current.close()


def test_a_system_that_starts_no_process_is_asked_again(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*_: object, **__: object) -> int:
        raise BlockingIOError("no more processes")

    host = FakeSupervisor()
    molds = MoldControl(OPTIONS, loop, host)
    molds._policy.on_ready()
    monkeypatch.setattr(os, "posix_spawn", spawn)
    molds.make()
    assert molds.status()["mold_state"] == "waiting"
    assert "no more processes" in molds.last_error
    molds.make_candidate()
    assert host.heard == ["candidate failed: no process can be started: no more processes"]


def test_a_process_is_ready_for_the_next_reload_where_files_are_watched(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "saved.py").write_text("import awoke\napp = awoke.App('shop')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    host = FakeSupervisor()
    molds = MoldControl(SwarmOptions(target="saved:app", nodes=1, socket="s", watch=True), loop, host)
    molds.make()
    turn_until(loop, host, "ready")
    host.heard.clear()
    before = molds.pids()
    assert len(before) == 2, "the mold and the spare process"
    molds.make_candidate()
    assert molds.candidate is not None
    assert molds.candidate.pidfd.pid in before
    turn_until(loop, host, "ready")
    molds.promote()
    turn_until(loop, host, "over")
    (spare,) = molds.pids() - before
    host.heard.clear()
    os.kill(spare, signal.SIGKILL)
    turn_until(loop, host, "over")
    assert host.heard == ["over"], "the loss of a spare process is no failure"
    molds.close()
    while molds.pids():
        loop.turn()
