"""`awoke resume` and `awoke skip` of a swarm.

All nodes are asked. The answer comes as soon as one node has executed the command, or all have refused it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.operate.commands import lines as command_lines
from awoke.swarm import protocol
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState

ANSWER_WITHIN_S = 5.0
"""Nodes that do not answer within this are named in the answer."""

Answer = Callable[[dict[str, Any]], object]


class Timer(Enum):
    """The deadline of a request."""

    ANSWER = auto()


class Request:
    """A request to resume a partition or to skip a message, and the nodes whose answer is missing."""

    def __init__(self, command: str, place: str, offset: int | None, missing: set[int], answer: Answer) -> None:
        self.command, self.place, self.offset = command, place, offset
        self.missing, self.answer = missing, answer
        self.blocking: list[int] = []
        """The offsets of the partition's messages that fail, as its node has said."""
        self.reason = ""
        """The reason why the node of the partition has not executed the command."""
        self.is_assigned: bool | None = None
        """True if the partition is assigned to a node that has answered; `None` if no node has answered."""


class Resumes:
    """The open requests. For the supervisor's thread; does not block."""

    def __init__(self, loop: Loop, nodes: Mapping[int, NodeHandle]) -> None:
        self._loop, self._nodes = loop, nodes
        self._open: dict[int, Request] = {}
        self._requests = 0

    def begin(
        self, topic: str, partition: int, answer: Answer, offset: int | None = None, group: str | None = None
    ) -> None:
        """Asks all nodes that are up to resume a partition, or to skip its message at `offset`."""
        self._requests += 1
        request = self._requests
        if offset is None:
            command, question = "resume", protocol.encode(protocol.Resume(topic, partition, request, group))
        else:
            command, question = "skip", protocol.encode(protocol.Skip(topic, partition, offset, request, group))
        self._ask(question, Request(command, f"{topic}[{partition}]", offset, set(), answer), request)

    def act(self, verb: str, arguments: protocol.Arguments, who: str, reason: str, answer: Answer) -> None:
        """Asks all nodes that are up to execute a command for a partition."""
        self._requests += 1
        request = self._requests
        question = protocol.encode(protocol.Act(verb, arguments, who, reason, request))
        place = f"{arguments.get('topic')}[{arguments.get('partition')}]"
        self._ask(question, Request(verb, place, None, set(), answer), request)

    def _ask(self, question: bytes, asked: Request, request: int) -> None:
        missing = asked.missing
        for node in self._nodes.values():
            if node.state is NodeState.UP and node.control is not None:
                with contextlib.suppress(OSError):  # Its buffer is full: it does not read, so it does not answer.
                    node.control.send(question)
                missing.add(node.number)
        self._open[request] = asked
        self._loop.deadlines.set(Deadline(Timer.ANSWER, request), ANSWER_WITHIN_S, lambda: self._fail(request))
        if not missing:
            self._end(request, {"failed": "no node is up"})

    def on_answer(self, node: int, message: protocol.Resumed) -> None:
        """Takes a node's answer. The first node that has executed the command is enough."""
        found = self._open.get(message.request)
        if found is None:
            return
        if message.is_done:
            done = {"done": found.command}
            self._end(message.request, {**done, "text": message.text} if message.text else done)
        elif message.error:
            self._end(message.request, {"error": message.error})
        else:
            found.blocking += message.blocking
            found.is_assigned = bool(found.is_assigned) or message.is_assigned
            if message.is_assigned:
                found.reason = found.reason or message.text
            self._strike(node, message.request)

    def forget(self, node: int) -> None:
        """Stops waiting for a node that has ended."""
        for request in list(self._open):
            self._strike(node, request)

    def _strike(self, node: int, request: int) -> None:
        found = self._open.get(request)
        if found is not None:
            found.missing.discard(node)
            if not found.missing:
                self._fail(request)

    def _fail(self, request: int) -> None:
        found = self._open[request]
        self._end(request, {"failed": why(found)})

    def _end(self, request: int, answer: dict[str, Any]) -> None:
        found = self._open.pop(request, None)
        self._loop.deadlines.cancel(Deadline(Timer.ANSWER, request))
        if found is not None:
            found.answer(answer)


def why(request: Request) -> str:
    """Returns the reason why no node has executed the command, with the nodes that did not answer."""
    silent = sorted(request.missing)
    where = " on any node that answered" if silent else " on any node"
    if request.is_assigned is False:
        text = command_lines.not_assigned(request.place, "no node that answered holds" if silent else "no node holds")
    elif request.reason:
        text = request.reason
    elif request.offset is None:
        text = f"{request.place} is neither paused nor stuck{where}"
    else:
        text = command_lines.why_not_skipped(request.place, request.offset, request.blocking, where)
    if not silent:
        return text
    word = "node" if len(silent) == 1 else "nodes"
    names = ", ".join(str(number) for number in silent)
    return f"{text}; {word} {names} did not answer within {ANSWER_WITHIN_S:g} s"
