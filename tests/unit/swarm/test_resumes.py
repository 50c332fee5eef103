"""`awoke resume` and `awoke skip` of a swarm: what is asked, and what is answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from awoke.observe.web.loop import Loop
from awoke.swarm import protocol, resumes
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.resumes import Resumes


class Nodes:
    """Nodes as the supervisor sees them, with the other end of their control sockets."""

    def __init__(self, count: int) -> None:
        self.loop = Loop()
        self.handles = {number: NodeHandle(number) for number in range(1, count + 1)}
        self.ends: dict[int, socket.socket] = {}
        for number, node in self.handles.items():
            node.control, self.ends[number] = protocol.pair()
            node.state = NodeState.UP
        self.resumes = Resumes(self.loop, self.handles)
        self.answers: list[dict[str, Any]] = []

    def begin(self, offset: int | None = None) -> None:
        self.resumes.begin("t", 1, self.answers.append, offset, "audit")

    def close(self) -> None:
        for number, node in self.handles.items():
            node.close()
            self.ends[number].close()
        self.loop.close()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = Nodes(3)
    yield nodes
    nodes.close()


def test_all_nodes_are_asked_and_the_one_that_has_resumed_is_enough(nodes: Nodes) -> None:
    nodes.begin()
    for end in nodes.ends.values():
        question = protocol.decode(end.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
        assert question == protocol.Resume("t", 1, 1, "audit")
    nodes.resumes.on_answer(3, protocol.Resumed(1, False))
    assert nodes.answers == []
    nodes.resumes.on_answer(2, protocol.Resumed(1, True))
    assert nodes.answers == [{"done": "resume"}]
    nodes.resumes.on_answer(1, protocol.Resumed(1, True))  # Too late to matter.
    assert len(nodes.answers) == 1
    assert nodes.loop.deadlines.next_in_s() is None


def test_a_group_that_the_app_does_not_have_is_an_error(nodes: Nodes) -> None:
    nodes.begin()
    nodes.resumes.on_answer(2, protocol.Resumed(1, False, error="app 'shop' has no group 'audit'"))
    assert nodes.answers == [{"error": "app 'shop' has no group 'audit'"}]


def test_no_node_that_holds_it_paused_is_a_failure(nodes: Nodes) -> None:
    nodes.begin()
    for number in nodes.handles:
        nodes.resumes.on_answer(number, protocol.Resumed(1, False))
    assert nodes.answers == [{"failed": "t[1] is neither paused nor stuck on any node"}]


def test_nodes_that_do_not_answer_in_time_are_named(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumes, "ANSWER_WITHIN_S", 0.01)
    nodes.begin()
    nodes.resumes.on_answer(2, protocol.Resumed(1, False))
    nodes.loop.turn()
    (found,) = nodes.answers
    assert "on any node that answered; nodes 1, 3 did not answer within" in found["failed"]


def test_a_node_that_ends_is_waited_for_no_longer(nodes: Nodes) -> None:
    nodes.begin()
    nodes.begin()
    for number in nodes.handles:
        nodes.resumes.forget(number)
    assert nodes.answers == [{"failed": "t[1] is neither paused nor stuck on any node"}] * 2


def test_a_swarm_without_nodes_says_so(nodes: Nodes) -> None:
    for node in nodes.handles.values():
        node.state = NodeState.BOOTING
    nodes.begin()
    assert nodes.answers == [{"failed": "no node is up"}]


def test_all_nodes_are_asked_to_skip_and_the_one_that_has_skipped_is_enough(nodes: Nodes) -> None:
    nodes.begin(42)
    for end in nodes.ends.values():
        question = protocol.decode(end.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
        assert question == protocol.Skip("t", 1, 42, 1, "audit")
    nodes.resumes.on_answer(3, protocol.Resumed(1, False))
    nodes.resumes.on_answer(2, protocol.Resumed(1, True))
    assert nodes.answers == [{"done": "skip"}]


@pytest.mark.parametrize(
    ("blocking", "said"),
    [
        ([], "no message of t[1] fails on any node"),
        ([41], "t[1] is not held up at offset 42, but by the message at offset 41"),
        ([7, 41], "t[1] is not held up at offset 42, but by the messages at offsets 7, 41"),
        ([*range(21)], f"at offsets {', '.join(map(str, range(20)))}…"),
    ],
)
def test_a_skip_of_another_message_says_which_fail(nodes: Nodes, blocking: list[int], said: str) -> None:
    nodes.begin(42)
    for number in nodes.handles:
        nodes.resumes.on_answer(number, protocol.Resumed(1, False, blocking if number == 2 else []))
    assert nodes.answers[0]["failed"].endswith(said)


def test_a_partition_that_no_node_holds_is_named_as_such() -> None:
    request = resumes.Request("skip", "t[9]", 1, set(), lambda answer: None)
    assert resumes.why(request) == "no message of t[9] fails on any node"
    request.is_assigned = False
    assert resumes.why(request) == "no node holds t[9]: ask the process of the group that holds it"
