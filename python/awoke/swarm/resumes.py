"""`awoke resume` of a swarm: asks all nodes, and answers as soon as the node that holds the partition has resumed it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from awoke.swarm import protocol
from awoke.swarm.loop import Loop
from awoke.swarm.node_handle import NodeHandle, NodeState

ANSWER_WITHIN_S = 2.0
"""Nodes that have not answered by then are named."""

Answer = Callable[[dict[str, Any]], object]


class Resume:
    """One partition to be resumed, and the nodes whose answer is missing."""

    def __init__(self, place: str, missing: set[int], answer: Answer) -> None:
        self.place, self.missing, self.answer = place, missing, answer


class Resumes:
    """The partitions that are being resumed. Belongs to the supervisor's thread; does not block."""

    def __init__(self, loop: Loop, nodes: Mapping[int, NodeHandle]) -> None:
        self._loop, self._nodes = loop, nodes
        self._resumes: dict[int, Resume] = {}
        self._requests = 0

    def begin(self, topic: str, partition: int, answer: Answer) -> None:
        """Asks all nodes that are up: the others hold no partition that is paused or stuck."""
        self._requests += 1
        request = self._requests
        question = protocol.encode("resume", topic=topic, partition=partition, request=request)
        missing = set()
        for node in self._nodes.values():
            if node.state is NodeState.UP and node.control is not None:
                with contextlib.suppress(
                    OSError
                ):  # Its buffer is full: it does not read, so it does not answer either.
                    node.control.send(question)
                missing.add(node.number)
        self._resumes[request] = Resume(f"{topic}[{partition}]", missing, answer)
        self._loop.deadlines.set(f"resume-{request}", ANSWER_WITHIN_S, lambda: self._fail(request))
        if not missing:
            self._end(request, {"failed": "no node is up"})

    def on_answer(self, node: int, request: int, is_resumed: bool) -> None:
        """Takes a node's answer. The first one that has resumed the partition is enough."""
        if is_resumed:
            self._end(request, {"done": "resume"})
        else:
            self._strike(node, request)

    def forget(self, node: int) -> None:
        """Waits no longer for a node that has ended."""
        for request in list(self._resumes):
            self._strike(node, request)

    def _strike(self, node: int, request: int) -> None:
        found = self._resumes.get(request)
        if found is not None:
            found.missing.discard(node)
            if not found.missing:
                self._fail(request)

    def _fail(self, request: int) -> None:
        found = self._resumes[request]
        self._end(request, {"failed": why(found.place, sorted(found.missing))})

    def _end(self, request: int, answer: dict[str, Any]) -> None:
        found = self._resumes.pop(request, None)
        self._loop.deadlines.cancel(f"resume-{request}")
        if found is not None:
            found.answer(answer)


def why(place: str, silent: list[int]) -> str:
    """Returns why a partition was not resumed, with the nodes that did not answer."""
    if not silent:
        return f"{place} is neither paused nor stuck on any node"
    word = "node" if len(silent) == 1 else "nodes"
    names = ", ".join(str(number) for number in silent)
    return (
        f"{place} is neither paused nor stuck on any node that answered; "
        f"{word} {names} did not answer within {ANSWER_WITHIN_S:g} s"
    )
