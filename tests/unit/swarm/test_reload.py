"""A reload, step by step; files that are watched: each change is reloaded, also one that comes when none can begin."""

from __future__ import annotations

import contextlib
import queue
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from awoke.errors import ConfigError
from awoke.observe.web.loop import Loop
from awoke.swarm.mold_control import MoldControl
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.reload import ASSIGNMENT, PROOF, FileWatch, Roll, RollState
from tests.support.waiting import wait_until
from tests.unit.swarm.fakes import FakeHost, FakePidfd, ManualDeadlines, up


@pytest.fixture
def deadlines() -> ManualDeadlines:
    return ManualDeadlines()


class FakeMolds:
    """A current mold of generation 1, and a candidate of generation 2."""

    def __init__(self) -> None:
        self.made: list[MoldHandle] = []
        self.current: MoldHandle | None = self._ready(1)
        self.candidate: MoldHandle | None = None
        self.did: list[str] = []

    def _ready(self, generation: int) -> MoldHandle:
        ours, theirs = socket.socketpair()
        ours.close()
        theirs.close()
        mold = MoldHandle(generation, cast(Pidfd, FakePidfd()), ours)
        mold.become_ready()
        self.made.append(mold)
        return mold

    def make_candidate(self) -> None:
        self.candidate = self._ready(2)

    def promote(self) -> None:
        self.did.append("promote")
        self.current, self.candidate = self.candidate, None

    def drop_candidate(self) -> None:
        self.did.append("drop")
        self.candidate = None


class Reload:
    """A reload of two nodes, step by step."""

    def __init__(self, deadlines: ManualDeadlines, *, at_once: bool = False) -> None:
        self.nodes = {1: up(1), 2: up(2)}
        self.molds, self.host, self.deadlines = FakeMolds(), FakeHost(), deadlines
        self.roll = Roll(self.nodes, cast(MoldControl, self.molds), deadlines, self.host, at_once=at_once)
        self.ended: list[str | None] = []

    def begin(self) -> None:
        assert self.roll.begin(self.ended.append)
        assert self.molds.candidate is not None
        self.roll.on_candidate_ready(self.molds.candidate)

    def restart(self, number: int, *, is_assigned: bool = True) -> None:
        """The node's process ends, and another one comes up."""
        node = self.nodes[number]
        self.end(number)
        self.roll.on_node_stopped(node)
        mold = self.roll.mold_for(node)
        assert mold is not None
        node.begin(socket.socket(), mold.generation)
        node.pidfd, node.state = cast(Pidfd, FakePidfd()), NodeState.UP
        self.roll.on_node_ready(node)
        if is_assigned:
            node.assigned_ns = 1
            self.roll.on_node_assigned(node)

    def prove(self) -> None:
        self.deadlines.pass_(PROOF)
        self.roll.on_node_alive(self.nodes[1])

    def end(self, number: int) -> None:
        self.nodes[number].close()
        self.nodes[number].state = NodeState.QUEUED

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()
        for mold in self.molds.made:
            mold.close()


@pytest.fixture
def reload(deadlines: ManualDeadlines) -> Iterator[Reload]:
    reload = Reload(deadlines)
    yield reload
    reload.close()


def test_the_first_node_proves_the_new_code_and_the_others_follow(reload: Reload, deadlines: ManualDeadlines) -> None:
    reload.begin()
    assert not reload.roll.begin(), "one at a time"
    assert reload.host.did == ["stop 1"]
    reload.restart(1)
    assert reload.nodes[1].mold == 2
    assert reload.host.did == ["stop 1"], "it has its partitions, and has not stayed up yet"
    assert reload.roll.mold_for(reload.nodes[2]) is reload.molds.current
    reload.roll.on_node_alive(reload.nodes[1])
    deadlines.pass_(PROOF)
    assert reload.host.did == ["stop 1"], "it may be frozen"
    reload.roll.on_node_alive(reload.nodes[1])
    assert reload.host.did == ["stop 1", "stop 2"]
    assert reload.molds.did == [], "the old mold lives"
    reload.restart(2)
    assert reload.molds.did == ["promote"]
    assert reload.ended == [None]
    assert reload.roll.state is RollState.IDLE


def test_a_node_that_gets_no_partitions_holds_the_reload_up_for_some_time_only(
    reload: Reload, deadlines: ManualDeadlines
) -> None:
    reload.begin()
    reload.restart(1, is_assigned=False)
    reload.prove()
    assert reload.host.did == ["stop 1"]
    deadlines.pass_(ASSIGNMENT)
    assert reload.host.did == ["stop 1", "stop 2"]


@pytest.mark.parametrize("is_proved", [False, True])
def test_a_failure_of_the_new_code_stops_the_reload_and_the_node_is_of_the_old_code_again(
    reload: Reload, deadlines: ManualDeadlines, is_proved: bool
) -> None:
    reload.begin()
    reload.restart(1)
    if is_proved:
        reload.prove()
    node = reload.nodes[1]
    reload.end(1)
    assert reload.roll.on_node_failed(node, "ended with 5")
    assert reload.ended == ["node 1, with the new code, ended with 5"]
    assert reload.roll.last_error == reload.ended[0]
    assert reload.molds.did == ["drop"]
    assert reload.roll.mold_for(node) is reload.molds.current
    assert reload.roll.state is RollState.IDLE
    assert deadlines.next_in_s() is None
    assert reload.roll.begin(), "another one may follow"


def test_a_failure_of_an_old_node_during_a_reload_is_an_ordinary_one(reload: Reload) -> None:
    reload.begin()
    reload.end(2)
    assert not reload.roll.on_node_failed(reload.nodes[2], "ended with 5")
    assert reload.roll.mold_for(reload.nodes[2]) is reload.molds.current
    assert reload.roll.is_under_way


def test_without_an_old_mold_a_failure_of_the_new_code_is_an_ordinary_one(reload: Reload) -> None:
    reload.begin()
    reload.restart(1)
    reload.molds.current = None
    assert reload.roll.mold_for(reload.nodes[2]) is reload.molds.candidate
    reload.end(1)
    assert not reload.roll.on_node_failed(reload.nodes[1], "ended with 5")
    assert reload.ended == ["node 1, with the new code, ended with 5"]


def test_new_code_that_is_not_imported_changes_nothing(reload: Reload) -> None:
    assert reload.roll.begin(reload.ended.append)
    reload.molds.candidate = None
    reload.roll.on_candidate_failed("SyntaxError: invalid syntax")
    assert reload.ended == ["the app could not be imported: SyntaxError: invalid syntax"]
    assert reload.host.did == []


def test_a_node_that_goes_for_good_during_its_turn_is_left_out(reload: Reload) -> None:
    reload.begin()
    node = reload.nodes[1]
    node.state = NodeState.LEAVING
    reload.end(1)
    del reload.nodes[1]
    reload.roll.on_node_gone(node)
    assert reload.host.did == ["stop 1", "stop 2"]


def test_the_end_of_the_swarm_ends_a_reload(reload: Reload) -> None:
    reload.begin()
    reload.roll.cancel("the swarm stops")
    reload.roll.cancel("the swarm stops")
    assert reload.ended == ["the swarm stops"]
    assert reload.host.possible == 1


@pytest.fixture
def saved(deadlines: ManualDeadlines) -> Iterator[Reload]:
    """A reload after a file was saved."""
    reload = Reload(deadlines, at_once=True)
    yield reload
    reload.close()


def test_all_nodes_are_replaced_together_after_a_file_was_saved(saved: Reload, deadlines: ManualDeadlines) -> None:
    saved.begin()
    assert saved.host.did == ["stop 1", "stop 2"]
    saved.restart(2)
    assert saved.molds.did == [], "the first one is not up yet"
    saved.restart(1)
    assert [node.mold for node in saved.nodes.values()] == [2, 2]
    assert (saved.molds.did, saved.ended) == (["promote"], [None])
    assert deadlines.next_in_s() is None


def test_all_nodes_return_to_the_old_code_if_one_fails_after_a_file_was_saved(saved: Reload) -> None:
    saved.begin()
    saved.restart(1)
    saved.host.did.clear()
    node = saved.nodes[2]
    saved.end(2)
    node.begin(socket.socket(), 2)
    saved.end(2)
    assert saved.roll.on_node_failed(node, "ended with 5")
    assert saved.ended == ["node 2, with the new code, ended with 5"]
    assert saved.molds.did == ["drop"]
    assert saved.host.did == ["stop 1"]
    assert saved.roll.mold_for(saved.nodes[1]) is saved.molds.current


def test_a_node_that_is_being_forked_when_a_file_was_saved_is_replaced_too(saved: Reload) -> None:
    saved.nodes[2].state = NodeState.FORKING
    saved.begin()
    assert saved.host.did == ["stop 1"]
    saved.roll.on_node_forked(saved.nodes[2])
    assert saved.host.did == ["stop 1", "stop 2"]


def test_a_node_that_goes_for_good_does_not_hold_a_saved_file_up(saved: Reload) -> None:
    saved.begin()
    saved.restart(1)
    node = saved.nodes.pop(2)
    saved.roll.on_node_gone(node)
    assert saved.ended == [None]
    node.close()


# Files that are watched.

OnEnd = Callable[[str | None], object]


class Files:
    """The library, and the changes that it reports. The scenarios use the real one."""

    def __init__(self) -> None:
        self.changes: queue.SimpleQueue[set[tuple[int, str]] | Exception] = queue.SimpleQueue()
        """An error is raised."""
        self.options: dict[str, Any] = {}

    def PythonFilter(self) -> None: ...  # noqa: N802 - the library's name

    def watch(self, *_: Path, **options: Any) -> Iterator[set[tuple[int, str]]]:
        self.options = options
        while found := self.changes.get():
            if isinstance(found, Exception):
                raise found
            yield found

    def save(self) -> None:
        self.changes.put({(1, "/shop/shop.py")})

    def close(self) -> None:
        self.changes.put(set())


class Reloads:
    """The reloads of a swarm: `ends` are those that have begun."""

    def __init__(self) -> None:
        self.ends: list[OnEnd] = []
        self.is_possible = True

    def begin(self, on_end: OnEnd) -> bool:
        if self.is_possible:
            self.ends.append(on_end)
        return self.is_possible


@pytest.fixture
def reloads() -> Reloads:
    return Reloads()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    files = Files()
    monkeypatch.setattr("awoke.swarm.reload.needs", lambda module, extra: files)
    return files


@pytest.fixture
def loop() -> Iterator[Loop]:
    with contextlib.closing(Loop()) as loop:
        yield loop


@pytest.fixture
def watch(files: Files, loop: Loop, reloads: Reloads) -> Iterator[FileWatch]:
    watch = FileWatch(Path("/shop"), loop, reloads.begin)
    watch.open()
    with contextlib.closing(watch), contextlib.closing(files):
        yield watch


@pytest.mark.usefixtures("watch")
def test_a_change_is_reloaded(files: Files, loop: Loop, reloads: Reloads) -> None:
    files.save()
    loop.turn()
    assert len(reloads.ends) == 1


def test_a_change_while_no_reload_is_possible_is_reloaded_when_one_is(
    files: Files, loop: Loop, watch: FileWatch, reloads: Reloads
) -> None:
    """The swarm has no nodes yet, or is in a reload that anyone has begun."""
    reloads.is_possible = False
    files.save()
    loop.turn()
    assert not reloads.ends
    reloads.is_possible = True
    watch.reload_changed()
    assert len(reloads.ends) == 1
    watch.reload_changed()
    assert len(reloads.ends) == 1, "nothing has changed since"


@pytest.mark.parametrize(
    ("error", "advice"),
    [(OSError("OS file watch limit reached."), True), (RuntimeError("the folder has gone"), False)],
)
def test_a_watch_that_ends_says_so(
    error: Exception, advice: bool, files: Files, watch: FileWatch, caplog: pytest.LogCaptureFixture
) -> None:
    files.changes.put(error)
    wait_until(lambda: bool(caplog.messages), "the end is told", every_s=0.01)
    assert f"/shop is not watched any more: {error}. awoke reload, or HUP, still reloads" in caplog.text
    assert ("fs.inotify.max_user_watches" in caplog.text) is advice


@pytest.mark.usefixtures("watch")
def test_a_folder_that_can_not_be_read_is_left_out(files: Files, loop: Loop) -> None:
    files.save()
    loop.turn()
    assert files.options["ignore_permission_denied"]


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, reloads: Reloads) -> None:
    def missing(module: str, extra: str) -> None:
        raise ConfigError(f"pip install 'awoke[{extra}]'", extra)

    monkeypatch.setattr("awoke.swarm.reload.needs", missing)
    loop = Loop()
    watch = FileWatch(Path("/shop"), loop, reloads.begin)
    with contextlib.closing(loop), contextlib.closing(watch), pytest.raises(ConfigError, match=r"awoke\[watch\]"):
        watch.open()
