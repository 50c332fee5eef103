"""Questions to all nodes at once: a command of an operator, or what the supervisor asks for its endpoint.

A question ends when no answer is missing, when one is enough, or after `ANSWER_WITHIN_S`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

import msgspec

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.operate.commands.views import DONE, WRONG, CommandResult, OperatorCommand
from awoke.swarm import protocol
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState

ANSWER_WITHIN_S = 5.0
"""Nodes that do not answer within this are left out, or named in the answer."""

Finish = Callable[[Mapping[int, CommandResult], Sequence[int]], object]
"""Gets the results of the nodes that have answered, and the numbers of those that have not."""


class QuestionTimer(Enum):
    """The deadline of a question."""

    ANSWER = auto()


class Question:
    """One question, and the results so far."""

    def __init__(self, finish: Finish, *, is_one_enough: bool) -> None:
        self._finish, self._is_one_enough = finish, is_one_enough
        self._results: dict[int, CommandResult] = {}
        self._silent: set[int] = set()
        """The nodes that have not answered."""
        self.missing: set[int] = set()
        """Those of them that may still answer."""

    def ask(self, node: NodeHandle, data: bytes) -> None:
        """Asks a node. One that does not read is not waited for."""
        assert node.control is not None
        self._silent.add(node.number)
        with contextlib.suppress(OSError):  # Its buffer is full.
            node.control.send(data)
            self.missing.add(node.number)

    def add(self, node: int, result: CommandResult) -> bool:
        """Takes a node's result; returns whether the question is answered."""
        self._silent.discard(node)
        self._results[node] = result
        is_enough = self._is_one_enough and (result.result == DONE or result.result in WRONG)
        return is_enough or self.forget(node)

    def forget(self, node: int) -> bool:
        """Stops waiting for this node, which has answered or ended; returns whether no answer is missing."""
        self.missing.discard(node)
        self._silent.discard(node)
        return not self.missing

    def finish(self) -> None:
        """Hands over the results that have come."""
        self._finish(self._results, sorted(self._silent))


class Questions:
    """The open questions of one swarm. For the supervisor's thread; does not block."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.nodes: dict[int, NodeHandle] = {}
        """The nodes that are asked: all of the swarm."""
        self._open: dict[int, Question] = {}
        self._requests = 0

    def ask(self, command: OperatorCommand, finish: Finish, *, is_one_enough: bool = False) -> None:
        """Asks all nodes that are up.

        With `is_one_enough` the first node that has executed the command, or finds it wrong, ends the question.
        """
        self._requests += 1
        number, question = self._requests, Question(finish, is_one_enough=is_one_enough)
        data = protocol.encode(protocol.Ask(number, command))
        for node in self.nodes.values():
            if node.state is NodeState.UP and node.control is not None:
                question.ask(node, data)
        self._open[number] = question
        self._loop.deadlines.set(Deadline(QuestionTimer.ANSWER, number), ANSWER_WITHIN_S, lambda: self._finish(number))
        if not question.missing:
            self._finish(number)

    def tell(self, what: str, finish: Finish) -> None:
        """Asks all nodes for their `metrics`, `health` or `threads`."""
        self.ask(OperatorCommand(verb=what, who="", via=""), finish)

    def on_answer(self, node: int, message: protocol.NodeAnswered) -> None:
        """Takes a node's answer; one that comes too late is dropped."""
        question = self._open.get(message.request)
        if question is not None and question.add(node, message.result):
            self._finish(message.request)

    def forget(self, node: int) -> None:
        """Stops waiting for a node that has ended."""
        for number, question in list(self._open.items()):
            if question.forget(node):
                self._finish(number)

    def _finish(self, number: int) -> None:
        question = self._open.pop(number, None)
        self._loop.deadlines.cancel(Deadline(QuestionTimer.ANSWER, number))
        if question is not None:
            question.finish()


def for_partition(
    command: OperatorCommand, results: Mapping[int, CommandResult], silent: Sequence[int]
) -> CommandResult:
    """Returns the result of a command for a partition: of the node that has executed it, or why none has."""
    for result in results.values():
        if result.result == DONE or result.result in WRONG:
            return msgspec.structs.replace(result, verb=command.verb)
    code = "failed_precondition" if results else "unavailable"
    if not results and not silent:
        return CommandResult(verb=command.verb, result=code, text="no node is up")
    reasons = dict.fromkeys(result.text for result in results.values() if result.is_here)
    if reasons:
        text = "; ".join(reasons)
    else:
        place = f"{command.arguments.get('topic')}[{command.arguments.get('partition')}]"
        who = "any node that answered" if silent else "any node"
        text = f"{place} is not assigned to {who}: ask the process of the group that has it"
    if silent:
        word = "node" if len(silent) == 1 else "nodes"
        text += f"; {word} {', '.join(map(str, silent))} did not answer within {ANSWER_WITHIN_S:g} s"
    return CommandResult(verb=command.verb, result=code, text=text)


def of_all(command: OperatorCommand, results: Mapping[int, CommandResult]) -> CommandResult:
    """Returns the results of all nodes that have answered as one, each with its node."""
    if not results:
        return CommandResult(verb=command.verb, result="unavailable", text="no node has answered")
    numbered = sorted(results.items())
    return CommandResult(
        verb=command.verb,
        result=DONE if any(each.result == DONE for _, each in numbered) else numbered[0][1].result,
        text="; ".join(f"node {number}: {result.text}" for number, result in numbered),
        stacks=[msgspec.structs.replace(stack, node=number) for number, each in numbered for stack in each.stacks],
        threads=[msgspec.structs.replace(thread, node=number) for number, each in numbered for thread in each.threads],
    )
