"""What a supervisor decides: silent nodes, molds that fail, reloads, the states of a node."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from typing import cast

import pytest

from awoke import exit_codes
from awoke.swarm import health, policy, protocol, rolling
from awoke.swarm.health import Health
from awoke.swarm.mold_handle import MoldHandle, MoldState
from awoke.swarm.molds import Molds
from awoke.swarm.node_handle import ALLOWED, NodeHandle, NodeState
from awoke.swarm.options import Options
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.rolling import Roll, RollState
from awoke.web.deadlines import Deadlines
from awoke.web.loop import Loop

OPTIONS = Options(target="a:b", nodes=2, socket="s")
VITALS = protocol.Vitals(1, 1 << 20, 10, 0, 0, 0, 0, 0, -1)


class FakePidfd:
    """Remembers signals."""

    def __init__(self, pid: int = 1) -> None:
        self.pid, self.signals = pid, list[int]()

    def send(self, number: int) -> bool:
        self.signals.append(number)
        return True

    def close(self) -> None:
        pass


class ManualDeadlines(Deadlines):
    """Deadlines whose time comes when a test says so."""

    def pass_(self, name: str) -> None:
        """Lets this deadline pass; the others stay."""
        action = self._entries.pop(name)[2]
        action()

    def moment(self, name: str) -> float:
        """Returns when it passes."""
        return self._entries[name][1]


class FakeHost:
    """A supervisor that only remembers."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def replace(self, node: NodeHandle, why: str) -> None:
        if node.state is NodeState.UP:
            self.did.append(f"replace {node.number}: {why}")
            node.enter(NodeState.STOPPING)

    def kill(self, node: NodeHandle, why: str) -> None:
        self.did.append(f"kill {node.number}: {why}")

    def stop_node(self, node: NodeHandle, *, is_asked: bool = False) -> None:
        self.did.append(f"stop {node.number}")
        node.enter(NodeState.STOPPING)

    def start_node(self, node: NodeHandle) -> None:
        self.did.append(f"start {node.number}")

    def start_queued(self) -> None:
        pass


def up(number: int, mold: int = 1) -> NodeHandle:
    node = NodeHandle(number)
    ours, theirs = socket.socketpair()
    theirs.close()
    node.begin(ours, mold)
    node.forked(cast(Pidfd, FakePidfd()))
    node.enter(NodeState.UP)
    return node


# Signs of life.


@pytest.fixture
def node() -> Iterator[NodeHandle]:
    node = up(1)
    yield node
    node.close()


@pytest.fixture
def deadlines() -> ManualDeadlines:
    return ManualDeadlines()


def signals_of(node: NodeHandle) -> list[int]:
    return cast(FakePidfd, node.pidfd).signals


def test_a_silent_node_that_stays_silent_is_killed_long_before_its_drain_time(
    node: NodeHandle, deadlines: ManualDeadlines
) -> None:
    host = FakeHost()
    judge = Health(OPTIONS, {1: node}, deadlines, host)
    judge.on_vitals(node, VITALS)
    deadlines.pass_("1:silent")
    assert host.did == ["replace 1: gave no sign of life for 10 s"]
    assert signals_of(node) == [signal.SIGCONT]
    deadlines.pass_("1:frozen")
    assert host.did[1] == "kill 1: was frozen, and did not stop within 3 s after it was continued"
    assert health.STOP_WITHIN_S < 5.0, "a frozen node is replaced within its deadline and 5 s"


def test_a_silent_node_that_comes_alive_and_works_on_a_job_may_finish_it(
    node: NodeHandle, deadlines: ManualDeadlines
) -> None:
    host = FakeHost()
    judge = Health(OPTIONS, {1: node}, deadlines, host)
    judge.expect(node)
    deadlines.pass_("1:silent")
    first = deadlines.moment("1:frozen")
    judge.on_vitals(node, VITALS._replace(oldest_job_ms=11_000))
    second = deadlines.moment("1:frozen")
    assert second > first
    # Without a job it has this time to commit and leave, and no more.
    judge.on_vitals(node, VITALS)
    assert deadlines.moment("1:frozen") == second
    deadlines.pass_("1:frozen")
    assert [each.split()[0] for each in host.did] == ["replace", "kill"]


def test_a_node_that_freezes_while_it_stops_is_continued_and_killed(
    node: NodeHandle, deadlines: ManualDeadlines
) -> None:
    host = FakeHost()
    judge = Health(OPTIONS, {1: node}, deadlines, host)
    judge.expect(node)
    node.enter(NodeState.STOPPING)
    deadlines.pass_("1:silent")
    assert host.did == [], "it has been told to stop"
    assert signals_of(node) == [signal.SIGCONT]
    deadlines.pass_("1:frozen")
    assert [each.split()[0] for each in host.did] == ["kill"]


def test_a_job_of_a_node_that_was_not_silent_sets_no_deadline(node: NodeHandle, deadlines: ManualDeadlines) -> None:
    Health(OPTIONS, {1: node}, deadlines, FakeHost()).on_vitals(node, VITALS._replace(oldest_job_ms=1_000))
    assert "1:frozen" not in deadlines


def test_a_node_that_was_frozen_for_a_moment_is_left_alone(node: NodeHandle, deadlines: ManualDeadlines) -> None:
    host = FakeHost()
    judge = Health(OPTIONS, {1: node}, deadlines, host)
    judge.on_vitals(node, VITALS)
    judge.on_vitals(node, VITALS)
    assert host.did == []
    assert 9.9 < (deadlines.next_in_s() or 0) <= 10.0


def test_a_node_whose_process_has_ended_is_not_silent(node: NodeHandle, deadlines: ManualDeadlines) -> None:
    host = FakeHost()
    Health(OPTIONS, {1: node}, deadlines, host).expect(node)
    node.enter(NodeState.ENDING)
    deadlines.pass_("1:silent")
    assert host.did == []
    assert "1:frozen" not in deadlines


# Molds.


def test_a_first_mold_that_fails_ends_the_swarm() -> None:
    assert policy.MoldPolicy().after(78, None, False) == (None, exit_codes.EXIT_CONFIGURATION)
    assert policy.MoldPolicy().after(-9, None, False) == (None, exit_codes.EXIT_GAVE_UP)


def test_while_a_node_runs_molds_are_made_for_ever_with_back_off() -> None:
    molds = policy.MoldPolicy()
    molds.on_ready()
    delays = [molds.after(78, None, True).restart_in_s for _ in range(20)]
    assert delays[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert set(delays[7:]) == {60.0}
    assert molds.after(-9, 61.0, True).restart_in_s == 1.0, "it served well"


def test_without_a_node_molds_that_fail_end_the_swarm() -> None:
    molds = policy.MoldPolicy(failures_max=2)
    molds.on_ready()
    assert molds.after(-9, 1.0, False).restart_in_s == 1.0
    assert molds.after(-9, None, False).restart_in_s == 2.0
    assert molds.after(-9, None, False) == (None, exit_codes.EXIT_TOO_MANY_RESTARTS)
    assert molds.after(78, None, False) == (None, exit_codes.EXIT_CONFIGURATION)


class FakeSupervisor:
    """What molds tell their supervisor."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.has_nodes = False

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

    def give_up(self, code: int) -> None:
        self.heard.append(f"gave up: {code}")


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def turn_until(loop: Loop, host: FakeSupervisor, word: str) -> None:
    loop.deadlines.set("test", 20.0, lambda: pytest.fail(f"no {word!r} in {host.heard}"))
    while not any(each.startswith(word) for each in host.heard):
        loop.turn()
    loop.deadlines.cancel("test")


def test_a_mold_that_is_stopped_while_it_imports_is_killed_at_its_deadline(loop: Loop) -> None:
    host = FakeSupervisor()
    options = Options(target="no_such_module:app", nodes=1, socket="s", boot_timeout_s=0.01)
    molds = Molds(options, loop, (), host)
    molds.make()
    (pid,) = molds.pids()
    os.kill(pid, signal.SIGSTOP)
    turn_until(loop, host, "over")
    assert host.heard == [f"gave up: {exit_codes.EXIT_GAVE_UP}", "over"]
    assert molds.pids() == set()
    assert "did not import the app" in molds.last_error


def test_a_mold_whose_app_is_refused_is_made_again_while_a_node_runs(loop: Loop) -> None:
    host = FakeSupervisor()
    molds = Molds(Options(target="no_such_module:app", nodes=1, socket="s"), loop, (), host)
    molds._policy.on_ready()
    host.has_nodes = True
    molds.make()
    turn_until(loop, host, "over")
    assert host.heard == ["over"]
    assert molds.status()["mold_state"] == "waiting"
    assert "no_such_module" in molds.status()["mold_error"]
    host.has_nodes = False
    molds.make_at_once()
    turn_until(loop, host, "gave up: 78")


def test_a_candidate_that_fails_changes_nothing(loop: Loop) -> None:
    host = FakeSupervisor()
    molds = Molds(Options(target="no_such_module:app", nodes=1, socket="s"), loop, (), host)
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
    molds = Molds(OPTIONS, loop, (), host)
    molds._policy.on_ready()
    monkeypatch.setattr(os, "posix_spawn", spawn)
    molds.make()
    assert molds.status()["mold_state"] == "waiting"
    assert "no more processes" in molds.last_error
    molds.make_candidate()
    assert host.heard == ["candidate failed: no process can be started: no more processes"]


# Reloads.


class FakeMolds:
    """A current mold of generation 1, and a candidate of generation 2."""

    def __init__(self) -> None:
        self.current: MoldHandle | None = self._ready(1)
        self.candidate: MoldHandle | None = None
        self.did: list[str] = []

    def _ready(self, generation: int) -> MoldHandle:
        ours, theirs = socket.socketpair()
        ours.close()
        theirs.close()
        mold = MoldHandle(generation, cast(Pidfd, FakePidfd()), ours)
        mold.become_ready()
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

    def __init__(self, deadlines: ManualDeadlines) -> None:
        self.nodes = {1: up(1), 2: up(2)}
        self.molds, self.host, self.deadlines = FakeMolds(), FakeHost(), deadlines
        self.roll = Roll(self.nodes, cast(Molds, self.molds), deadlines, self.host)
        self.ended: list[str | None] = []

    def begin(self) -> None:
        assert self.roll.begin(self.ended.append)
        assert self.molds.candidate is not None
        self.roll.on_candidate_ready(self.molds.candidate)

    def restart(self, number: int, *, is_assigned: bool = True) -> None:
        """The node's process ends, and another one comes up."""
        node = self.nodes[number]
        self.end(number)
        assert self.roll.on_node_ended(node, True, "")
        mold = self.roll.mold_for(node)
        assert mold is not None
        node.begin(socket.socket(), mold.generation)
        node.forked(cast(Pidfd, FakePidfd()))
        node.enter(NodeState.UP)
        self.roll.on_node_ready(node)
        if is_assigned:
            node.assigned_ns = 1
            self.roll.on_node_assigned(node)

    def prove(self) -> None:
        self.deadlines.pass_(rolling.PROOF)
        self.roll.on_node_alive(self.nodes[1])

    def end(self, number: int) -> None:
        self.nodes[number].enter(NodeState.ENDING)
        self.nodes[number].end()

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()


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
    deadlines.pass_(rolling.PROOF)
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
    deadlines.pass_(rolling.ASSIGNMENT)
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
    assert reload.roll.on_node_ended(node, False, "ended with 5")
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
    assert not reload.roll.on_node_ended(reload.nodes[2], False, "ended with 5")
    assert reload.roll.mold_for(reload.nodes[2]) is reload.molds.current
    assert reload.roll.is_under_way


def test_without_an_old_mold_a_failure_of_the_new_code_is_an_ordinary_one(reload: Reload) -> None:
    reload.begin()
    reload.restart(1)
    reload.molds.current = None
    assert reload.roll.mold_for(reload.nodes[2]) is reload.molds.candidate
    reload.end(1)
    assert not reload.roll.on_node_ended(reload.nodes[1], False, "ended with 5")
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
    node.is_wanted = False
    reload.end(1)
    del reload.nodes[1]
    reload.roll.on_node_gone(node)
    assert reload.host.did == ["stop 1", "stop 2"]


def test_the_end_of_the_swarm_ends_a_reload(reload: Reload) -> None:
    reload.begin()
    reload.roll.cancel("the swarm stops")
    reload.roll.cancel("the swarm stops")
    assert reload.ended == ["the swarm stops"]


# States.


def test_a_change_of_state_that_is_not_allowed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    node = NodeHandle(3)
    node.enter(NodeState.QUEUED)
    assert not caplog.records
    node.enter(NodeState.UP)
    assert "node 3 goes from queued to up" in caplog.text
    assert node.state is NodeState.UP


def test_every_state_can_be_left_and_reached() -> None:
    assert set(ALLOWED) == set(NodeState)
    assert set.union(*ALLOWED.values()) == set(NodeState)


def test_a_mold_that_is_not_ready_forks_nothing() -> None:
    ours, theirs = protocol.pair()
    mold = MoldHandle(1, cast(Pidfd, FakePidfd()), ours)
    with ours, theirs:
        assert not mold.fork(1, theirs.fileno())
        assert mold.served_s is None
        mold.become_ready()
        assert mold.fork(1, theirs.fileno())
        mold.kill()
        assert mold.state is MoldState.ENDING
        assert not mold.fork(1, theirs.fileno())
