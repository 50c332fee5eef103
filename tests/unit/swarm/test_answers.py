"""The open questions to nodes: an answer goes to the question that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from awoke.observe.web.loop import Loop
from awoke.swarm import protocol
from awoke.swarm.answers import Answers
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState


class Asked:
    """One node that is up, asked for its threads and to resume a partition."""

    def __init__(self) -> None:
        self.loop, self.gathered, self.resumed = Loop(), list[Mapping[int, str]](), list[dict[str, Any]]()
        self.answers, self.node = Answers(self.loop), NodeHandle(1)
        self.node.control, self.end = protocol.pair()
        self.node.state = NodeState.UP
        self.answers.nodes[1] = self.node  # Of a swarm whose nodes come later.
        self.answers.gatherings.begin("threads", self.gathered.append)
        self.answers.resumes.begin("orders", 3, self.resumed.append)

    def questions(self) -> list[object]:
        return [protocol.decode(self.end.recv(protocol.MESSAGE_MAX), protocol.TO_NODE) for _ in range(2)]

    def close(self) -> None:
        self.node.close()
        self.end.close()
        self.loop.close()


@pytest.fixture
def asked() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.close()


def test_a_node_that_is_added_later_is_asked(asked: Asked) -> None:
    assert asked.questions() == [protocol.Gather("threads", 1), protocol.Resume("orders", 3, 1)]


def test_each_answer_goes_to_its_kind_of_question_although_their_numbers_are_the_same(asked: Asked) -> None:
    asked.answers.on_answer(1, protocol.Resumed(1, True))
    assert (asked.gathered, asked.resumed) == ([], [{"done": "resume"}])
    asked.answers.on_answer(1, protocol.Gathered(1, "all threads"))
    assert asked.gathered == [{1: "all threads"}]
    assert len(asked.resumed) == 1


def test_no_question_waits_for_a_node_that_has_ended(asked: Asked) -> None:
    asked.answers.forget(1)
    assert asked.gathered == [{}]
    assert len(asked.resumed) == 1
    assert "failed" in asked.resumed[0]
    assert asked.loop.deadlines.next_in_s() is None
