"""Questions to all nodes: what is asked, and the one answer that is made of theirs."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence

import pytest

from awoke.observe.web.loop import Loop
from awoke.operate.commands.views import CommandResult, OperatorCommand, StackOfThread
from awoke.swarm import protocol, questions
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.questions import Questions, for_partition, of_all

SKIP = OperatorCommand(
    verb="skip", arguments={"topic": "t", "partition": 1, "offset": 42}, who="ann", via="socket", reason="why"
)
STACKS = OperatorCommand(verb="stacks", who="ann", via="socket")
DONE = CommandResult(verb="skip", text="it is skipped")
REFUSED = CommandResult(verb="skip", result="failed_precondition", text="no message of t[1] fails")
NOT_HERE = CommandResult(verb="skip", result="failed_precondition", text="t[1] is not assigned", is_here=False)
WRONG = CommandResult(verb="skip", result="not_found", text="app 'shop' has no group 'audit'")


class Nodes:
    """Nodes that are up, with the other ends of their control sockets, and what was answered."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.questions = Questions(self.loop)
        self.handles = self.questions.nodes
        self.ends: dict[int, socket.socket] = {}
        for number in (1, 2, 3):
            node = self.handles[number] = NodeHandle(number)
            node.control, self.ends[number] = protocol.pair()
            node.state = NodeState.UP
        self.found: list[tuple[dict[int, CommandResult], list[int]]] = []

    def finish(self, results: Mapping[int, CommandResult], silent: Sequence[int]) -> None:
        self.found.append((dict(results), list(silent)))

    def says(self, node: int, result: CommandResult, request: int = 1) -> None:
        self.questions.on_answer(node, protocol.NodeAnswered(request, result))

    def close(self) -> None:
        for number, node in self.handles.items():
            node.close()
            self.ends[number].close()
        self.loop.close()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = Nodes()
    yield nodes
    nodes.close()


def test_all_nodes_are_asked_and_all_answers_are_handed_over(nodes: Nodes) -> None:
    nodes.questions.tell("metrics", nodes.finish)
    for end in nodes.ends.values():
        asked = protocol.decode(end.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
        assert asked == protocol.Ask(1, OperatorCommand(verb="metrics", who="", via=""))
    texts = {number: CommandResult(verb="metrics", text=f"of {number}") for number in nodes.handles}
    for number, result in texts.items():
        assert nodes.found == []
        nodes.says(number, result)
    nodes.says(2, texts[2])
    assert nodes.found == [(texts, [])]
    assert nodes.loop.deadlines.next_in_s() is None


@pytest.mark.parametrize("first", [DONE, WRONG])
def test_the_node_that_has_done_it_or_finds_it_wrong_is_enough(nodes: Nodes, first: CommandResult) -> None:
    nodes.questions.ask(SKIP, nodes.finish, is_one_enough=True)
    asked = protocol.decode(nodes.ends[3].recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
    assert asked == protocol.Ask(1, SKIP)
    nodes.says(3, NOT_HERE)
    assert nodes.found == []
    nodes.says(2, first)
    nodes.says(1, DONE)  # Too late to matter.
    assert nodes.found == [({3: NOT_HERE, 2: first}, [1])]
    assert nodes.loop.deadlines.next_in_s() is None


def test_an_answer_goes_to_its_own_question(nodes: Nodes) -> None:
    nodes.questions.ask(SKIP, lambda results, silent: nodes.found.append(({}, [])), is_one_enough=True)
    nodes.questions.ask(STACKS, nodes.finish)
    nodes.says(1, DONE, request=1)
    assert nodes.found == [({}, [])]


def test_nodes_that_do_not_answer_in_time_are_named(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "ANSWER_WITHIN_S", 0.0)
    nodes.questions.ask(SKIP, nodes.finish, is_one_enough=True)
    nodes.says(2, REFUSED)
    nodes.loop.turn()
    assert nodes.found == [({2: REFUSED}, [1, 3])]


def test_a_node_that_ends_is_waited_for_no_longer(nodes: Nodes) -> None:
    nodes.questions.ask(SKIP, nodes.finish, is_one_enough=True)
    nodes.questions.tell("health", nodes.finish)
    for number in nodes.handles:
        nodes.questions.forget(number)
    assert nodes.found == [({}, [])] * 2
    assert nodes.loop.deadlines.next_in_s() is None


def test_a_node_that_reads_nothing_is_named_and_not_waited_for(nodes: Nodes) -> None:
    for end in nodes.ends.values():
        end.close()
    nodes.questions.ask(SKIP, nodes.finish)
    assert nodes.found == [({}, [1, 2, 3])]


def test_without_a_node_that_is_up_nothing_is_waited_for(nodes: Nodes) -> None:
    for node in nodes.handles.values():
        node.state = NodeState.BOOTING
    nodes.questions.ask(SKIP, nodes.finish)
    assert nodes.found == [({}, [])]


@pytest.mark.parametrize(
    ("results", "silent", "result", "text"),
    [
        ({1: NOT_HERE, 2: DONE}, [3], "done", "it is skipped"),
        ({1: NOT_HERE, 2: WRONG}, [], "not_found", "app 'shop' has no group 'audit'"),
        ({1: NOT_HERE, 2: REFUSED}, [], "failed_precondition", "no message of t[1] fails"),
        ({1: REFUSED}, [2], "failed_precondition", "no message of t[1] fails; node 2 did not answer within 5 s"),
        (
            {1: NOT_HERE},
            [],
            "failed_precondition",
            "t[1] is not assigned to any node: ask the process of the group that has it",
        ),
        (
            {1: NOT_HERE},
            [2, 3],
            "failed_precondition",
            "t[1] is not assigned to any node that answered: ask the process of the group that has it; "
            "nodes 2, 3 did not answer within 5 s",
        ),
        ({}, [], "unavailable", "no node is up"),
    ],
)
def test_the_answer_for_a_partition_is_that_of_its_node(
    results: dict[int, CommandResult], silent: list[int], result: str, text: str
) -> None:
    found = for_partition(SKIP, results, silent)
    assert (found.verb, found.result, found.text) == ("skip", result, text)


def test_the_groups_of_a_partition_may_be_on_several_nodes() -> None:
    other = CommandResult(verb="skip", result="failed_precondition", text="t[1] offset 42 does not fail")
    assert for_partition(SKIP, {1: REFUSED, 2: other, 3: REFUSED}, []).text == f"{REFUSED.text}; {other.text}"


def test_the_answers_of_all_nodes_are_one_and_each_has_its_node() -> None:
    stack = StackOfThread(name="worker-1", owner="shop", lines=["a.py:1 in f"])
    found = of_all(STACKS, {2: CommandResult(verb="stacks", text="1 threads", stacks=[stack]), 1: REFUSED})
    assert (found.result, found.text) == ("done", "node 1: no message of t[1] fails; node 2: 1 threads")
    assert found.stacks == [StackOfThread(name="worker-1", owner="shop", lines=["a.py:1 in f"], node=2)]
    assert (of_all(STACKS, {1: REFUSED}).result, of_all(STACKS, {}).text) == (
        "failed_precondition",
        "no node has answered",
    )
