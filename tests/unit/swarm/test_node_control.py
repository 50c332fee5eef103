"""Nodes that are started, stopped, killed and reaped, with processes that only the test ends."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from typing import cast

import pytest

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.swarm import node_control, protocol
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.node_control import NodeControl, end_of
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeEvent, NodeState, NodeTimer
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.questions import Questions
from awoke.text import exit_codes
from tests.unit.swarm.fakes import FakePidfd, up


class FakeSwarm:
    """A swarm that only remembers."""

    def __init__(self) -> None:
        self.is_stopping = self.is_quiet = False
        self.did: list[str] = []

    def end_quiet(self) -> None:
        self.is_quiet = False

    def on_node_up(self) -> None:
        self.did.append("up")

    def add_exit_code(self, code: int) -> None:
        self.did.append(f"exit code {code}")

    def end_swarm(self, code: int) -> None:
        self.did.append(f"end swarm {code}")


class Controlled:
    """Node control with one node, and a mold whose end of the control socket is the test's."""

    def __init__(self) -> None:
        self.loop, self.swarm = Loop(), FakeSwarm()
        options = SwarmOptions(target="a:b", nodes=1, socket="s", restarts_max=2)
        self.control = NodeControl(options, self.loop, Questions(self.loop), self.swarm)
        ours, self.mold_end = protocol.pair()
        self.mold = MoldHandle(1, cast(Pidfd, FakePidfd()), ours)
        self.mold.become_ready()
        self.control.molds.current = self.mold
        self.node = self.control.nodes[1] = NodeHandle(1)
        self.ends: list[socket.socket] = []

    def fork(self) -> FakePidfd:
        """Answers the request to the mold; the process's end of its control socket is `ends[-1]`."""
        received = protocol.receive(self.mold_end)
        assert received is not None
        assert protocol.decode(received.data, protocol.TO_MOLD).node == 1
        self.ends.append(socket.socket(fileno=received.descriptors[0]))
        process = FakePidfd()
        self.control.on_forked(self.mold, 1, cast(Pidfd, process))
        return process

    def boot(self) -> FakePidfd:
        """Starts the node and lets its app run."""
        self.control.start(self.node)
        process = self.fork()
        self.say(protocol.NodeReady())
        assert self.state() is NodeState.UP
        return process

    def say(self, message: protocol.NodeSays) -> None:
        self.ends[-1].send(protocol.encode(message))
        self.control.on_message(self.node)

    def state(self) -> NodeState:
        return self.node.state

    def has(self, timer: NodeTimer) -> bool:
        return Deadline(timer, 1) in self.loop.deadlines

    def close(self) -> None:
        for node in self.control.nodes.values():
            node.close()
        for end in self.ends:
            end.close()
        self.mold.close()
        self.mold_end.close()
        self.loop.close()


@pytest.fixture
def one() -> Iterator[Controlled]:
    one = Controlled()
    yield one
    one.close()


def test_a_node_that_is_told_of_no_topic_ends_no_node_that_works(one: Controlled) -> None:
    process = one.boot()
    one.control.nodes[2] = up(2)
    one.say(protocol.StartFailed("topic 'orders' does not exist"))
    process.end(exit_codes.EXIT_CONFIGURATION)
    one.loop.turn()
    assert one.state() is NodeState.WAITING
    assert one.has(NodeTimer.RESTART)
    assert one.swarm.did == ["up"]


def test_a_node_whose_name_another_swarm_has_ends_this_swarm(one: Controlled) -> None:
    process = one.boot()
    one.say(protocol.StartFailed("another process joined the group with the same instance_id", is_name_taken=True))
    process.end(exit_codes.EXIT_CONFIGURATION)
    one.loop.turn()
    assert one.swarm.did == ["up", "end swarm 78"]
    assert not one.has(NodeTimer.RESTART)


def test_a_node_is_forked_watched_and_up(one: Controlled) -> None:
    one.control.start_queued()
    assert one.state() is NodeState.FORKING
    assert one.has(NodeTimer.FORK)
    one.fork()
    assert one.state() is NodeState.BOOTING
    assert [one.has(each) for each in (NodeTimer.FORK, NodeTimer.BOOT, NodeTimer.SILENT)] == [False, True, True]
    one.say(protocol.NodeReady())
    one.say(protocol.NodeReady())
    assert one.state() is NodeState.UP
    assert one.swarm.did == ["up"]
    assert not one.has(NodeTimer.BOOT)


def test_without_a_mold_a_node_is_queued(one: Controlled) -> None:
    one.control.molds.current = None
    one.control.start(one.node)
    assert one.state() is NodeState.QUEUED
    one.control.molds.current = one.mold
    one.control.on_mold_ready(one.mold)
    assert one.state() is NodeState.FORKING


def test_a_mold_that_ends_before_it_has_forked_is_replaced_by_another(one: Controlled) -> None:
    one.control.start(one.node)
    one.control.molds.current = None
    one.control.on_mold_over(one.mold)
    assert one.state() is NodeState.QUEUED
    assert one.node.control is None


def test_a_process_that_crashes_is_followed_at_once_and_the_next_after_a_back_off(one: Controlled) -> None:
    one.boot().end(1)
    one.loop.turn()
    assert one.state() is NodeState.FORKING
    assert one.node.restarts == 1
    one.fork().end(1)
    one.loop.turn()
    assert one.state() is NodeState.WAITING
    assert one.has(NodeTimer.RESTART)
    assert one.node.restarts == 2
    one.control.start(one.node)
    one.fork().end(-9)
    one.loop.turn()
    assert one.swarm.did == ["up", f"end swarm {exit_codes.EXIT_TOO_MANY_RESTARTS}"]


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [(3, "ended with 3 after 1.5 s"), (-9, "ended by SIGKILL after 1.5 s"), (-40, "ended by signal 40 after 1.5 s")],
)
def test_the_end_of_a_process_that_says_nothing_is_named(exit_code: int, text: str) -> None:
    assert end_of(exit_code, 1.5) == text


def test_a_process_that_can_not_be_reaped_yet_is_reaped_upon_a_signal(one: Controlled) -> None:
    process = one.boot()
    process.end(None)
    one.loop.turn()
    assert one.state() is NodeState.CRASHING
    assert one.loop.deadlines.next_in_s() is not None, "of the sign of life"
    watched = {key.fileobj for key in one.loop.selector.get_map().values()}
    assert process not in watched, "it stays readable, and would end each wait at once"
    one.control.reap_ended()
    assert one.state() is NodeState.CRASHING
    process.exit_code = 0
    one.control.reap_ended()
    assert one.state() is NodeState.FORKING


def test_a_tripwire_tells_of_an_end_before_the_pidfd_does(one: Controlled) -> None:
    process = one.boot()
    reading, writing = socket.socketpair()
    socket.send_fds(one.ends[-1], [protocol.encode(protocol.Tripwire())], [reading.fileno()])
    one.control.on_message(one.node)
    reading.close()
    writing.close()
    one.loop.turn()
    assert one.state() is NodeState.CRASHING
    assert one.node.tripwire is None
    assert one.control.last_death_ns > 0
    process.end(0)
    one.loop.turn()
    assert one.state() is NodeState.FORKING


def test_what_a_process_said_last_is_why_it_failed(one: Controlled) -> None:
    process = one.boot()
    one.ends[-1].send(protocol.encode(protocol.StartFailed("no topic")))
    process.end(1)
    one.loop.forget(one.node.control)
    one.loop.turn()
    assert one.node.last_error == "no topic"


def test_a_process_that_is_stopped_is_followed_and_that_is_no_failure(one: Controlled) -> None:
    process = one.boot()
    one.control.stop(one.node)
    assert process.signals == [signal.SIGTERM, signal.SIGCONT]
    assert one.has(NodeTimer.STOP)
    process.end(-15)
    one.loop.turn()
    assert one.state() is NodeState.FORKING
    assert one.node.restarts == 0


def test_a_process_that_is_not_well_writes_its_stacks_and_is_told_to_end_once(one: Controlled) -> None:
    process = one.boot()
    one.control.replace(one.node, "is silent")
    one.control.replace(one.node, "is silent again")
    assert process.signals == [signal.SIGUSR2, signal.SIGTERM, signal.SIGCONT]
    assert one.node.last_error == "is silent"
    one.control.kill(one.node, "did not stop")
    assert process.signals[-1] == signal.SIGKILL


def test_a_kill_of_a_swarm_that_stops_is_told_by_its_exit_code(one: Controlled) -> None:
    process = one.boot()
    one.swarm.is_stopping = True
    one.control.retire(one.node)
    one.control.kill(one.node, "did not stop")
    process.end(-9)
    one.loop.turn()
    late = f"exit code {exit_codes.EXIT_LATE}"
    assert one.swarm.did == ["up", late, late]
    assert one.state() is NodeState.GONE
    assert not one.control.has_processes()
    assert 1 in one.control.nodes, "the status of a swarm that stops shows it"


def test_a_node_that_is_retired_is_forgotten_when_its_process_has_ended(one: Controlled) -> None:
    process = one.boot()
    one.control.retire(one.node)
    assert one.control.has_processes()
    process.end(0)
    one.loop.turn()
    assert one.control.nodes == {}
    assert one.loop.deadlines.next_in_s() is None


def test_a_process_that_is_not_wanted_any_more_when_it_is_forked_is_told_to_end(one: Controlled) -> None:
    one.control.start(one.node)
    one.control.retire(one.node)
    assert one.state() is NodeState.UNWANTED
    process = one.fork()
    assert process.signals == [signal.SIGTERM, signal.SIGCONT]
    one.control.keep(one.node)
    process.end(0)
    one.loop.turn()
    assert one.state() is NodeState.FORKING, "it is wanted again"


def test_a_process_that_no_node_waits_for_is_killed(one: Controlled) -> None:
    one.boot()
    late = FakePidfd()
    one.control.on_forked(one.mold, 1, cast(Pidfd, late))
    assert late.signals == [signal.SIGKILL]
    assert one.state() is NodeState.UP


def test_a_node_that_can_not_be_forked_is_tried_again(one: Controlled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_control, "START_AGAIN_S", 0.0)
    one.control.start(one.node)
    one.control.on_not_forked(one.mold, 1, "no memory")
    assert one.state() is NodeState.WAITING
    assert one.node.last_error == "can't be started: no memory"
    one.loop.turn()
    assert one.state() is NodeState.FORKING


def test_a_quiet_swarm_has_quiet_nodes(one: Controlled) -> None:
    one.swarm.is_quiet = True
    process = one.boot()
    assert process.signals == [signal.SIGTSTP]
    assert one.node.is_quiet


def test_an_impossible_event_is_logged_and_changes_nothing(one: Controlled, caplog: pytest.LogCaptureFixture) -> None:
    one.control.handle(one.node, NodeEvent.READY)
    assert "node 1: READY can't come while it is queued, which is a bug of awoke" in caplog.text
    assert one.state() is NodeState.QUEUED


def test_a_reload_is_possible_when_the_nodes_are_there(one: Controlled) -> None:
    control, nodes = one.control, []
    control.when_reload_possible = lambda: nodes.append(len(control.nodes))
    control.nodes.clear()
    control.on_mold_ready(one.mold)
    assert nodes == [1]
    control.on_mold_ready(one.mold)
    assert nodes == [1], "another mold of the same code"
