"""Questions to all nodes at once, for metrics, threads or health. The answer holds the replies that come in time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from enum import Enum, auto

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Loop
from awoke.swarm import protocol
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState

GATHER_WITHIN_S = 5.0
"""Nodes that do not answer within this are left out."""

Finish = Callable[[Mapping[int, str]], object]
"""Gets the texts of the nodes that have answered."""


class Timer(Enum):
    """The deadline of a question."""

    ANSWER = auto()


class Gathering:
    """One question, and the answers to it so far."""

    def __init__(self, asked: set[int], finish: Finish) -> None:
        self._missing, self._finish = asked, finish
        self._texts: dict[int, str] = {}

    def add(self, node: int, text: str) -> bool:
        """Takes a node's answer; returns whether no answer is missing."""
        self._texts[node] = text
        return self.forget(node)

    def forget(self, node: int) -> bool:
        """Stops waiting for this node; returns whether no answer is missing."""
        self._missing.discard(node)
        return not self._missing

    def finish(self) -> None:
        """Hands over the answers that have come."""
        self._finish(self._texts)


class Gatherings:
    """The open questions. For the supervisor's thread; does not block."""

    def __init__(self, loop: Loop, nodes: Mapping[int, NodeHandle]) -> None:
        self._loop, self._nodes = loop, nodes
        self._open: dict[int, Gathering] = {}
        self._requests = 0

    def begin(self, what: protocol.Kind, finish: Finish) -> None:
        """Asks all nodes that are up; `finish` gets the answers of those that answer in time."""
        self._requests += 1
        request = self._requests
        asked = set()
        for node in self._nodes.values():
            if node.state is NodeState.UP and node.control is not None:
                with contextlib.suppress(OSError):  # Its buffer is full: it does not read, so it is left out.
                    node.control.send(protocol.encode(protocol.Gather(what, request)))
                    asked.add(node.number)
        self._open[request] = Gathering(asked, finish)
        self._loop.deadlines.set(Deadline(Timer.ANSWER, request), GATHER_WITHIN_S, lambda: self._finish(request))
        if not asked:
            self._finish(request)

    def on_answer(self, node: int, message: protocol.Gathered) -> None:
        """Takes a node's answer; one that comes too late is dropped."""
        gathering = self._open.get(message.request)
        if gathering is not None and gathering.add(node, message.text):
            self._finish(message.request)

    def forget(self, node: int) -> None:
        """Stops waiting for a node that has ended."""
        for request, gathering in list(self._open.items()):
            if gathering.forget(node):
                self._finish(request)

    def _finish(self, request: int) -> None:
        gathering = self._open.pop(request, None)
        self._loop.deadlines.cancel(Deadline(Timer.ANSWER, request))
        if gathering is not None:
            gathering.finish()
