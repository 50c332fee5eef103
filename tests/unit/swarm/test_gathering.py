"""Questions to all nodes: the answer is made of what comes in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

import pytest

from awoke.observe.web.loop import Loop
from awoke.swarm import gathering, protocol
from awoke.swarm.gathering import Gatherings
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState


class Asked:
    """Two nodes that are up, with the other ends of their control sockets."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.nodes = {1: NodeHandle(1), 2: NodeHandle(2)}
        self.ends: list[socket.socket] = []
        for node in self.nodes.values():
            node.control, end = protocol.pair()
            node.state = NodeState.UP
            self.ends.append(end)
        self.gatherings = Gatherings(self.loop, self.nodes)
        self.found: list[Mapping[int, str]] = []

    def close(self) -> None:
        for node in self.nodes.values():
            node.close()
        for end in self.ends:
            end.close()
        self.loop.close()


@pytest.fixture
def asked() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.close()


def test_all_nodes_are_asked_and_all_answers_are_handed_over(asked: Asked) -> None:
    asked.gatherings.begin("metrics", asked.found.append)
    for end in asked.ends:
        assert protocol.decode(end.recv(1_000), protocol.TO_NODE) == protocol.Gather("metrics", 1)
    asked.gatherings.on_answer(1, protocol.Gathered(1, "one"))
    assert asked.found == []
    asked.gatherings.on_answer(2, protocol.Gathered(1, "two"))
    asked.gatherings.on_answer(2, protocol.Gathered(1, "again"))
    assert asked.found == [{1: "one", 2: "two"}]
    assert asked.loop.deadlines.next_in_s() is None


def test_a_node_that_does_not_answer_in_time_is_left_out(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "GATHER_WITHIN_S", 0.0)
    asked.gatherings.begin("threads", asked.found.append)
    asked.gatherings.on_answer(1, protocol.Gathered(1, "one"))
    asked.loop.turn()
    assert asked.found == [{1: "one"}]


def test_a_node_that_ends_is_waited_for_no_longer(asked: Asked) -> None:
    asked.gatherings.begin("health", asked.found.append)
    asked.gatherings.forget(1)
    asked.gatherings.forget(2)
    assert asked.found == [{}]


def test_without_a_node_the_answer_is_empty(asked: Asked) -> None:
    for node in asked.nodes.values():
        node.state = NodeState.BOOTING
    asked.gatherings.begin("health", asked.found.append)
    assert asked.found == [{}]
