"""The questions to nodes that are not answered yet."""

from __future__ import annotations

from awoke.observe.web.loop import Loop
from awoke.swarm import protocol
from awoke.swarm.gathering import Gatherings
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.resumes import Resumes


class Answers:
    """The open questions of one swarm. For the supervisor's thread; does not block."""

    def __init__(self, loop: Loop) -> None:
        self.nodes: dict[int, NodeHandle] = {}
        """The nodes that are asked: all of the swarm."""
        self.gatherings = Gatherings(loop, self.nodes)
        self.resumes = Resumes(loop, self.nodes)

    def on_answer(self, node: int, message: protocol.Gathered | protocol.Resumed) -> None:
        """Takes a node's answer."""
        if isinstance(message, protocol.Gathered):
            self.gatherings.on_answer(node, message)
        else:
            self.resumes.on_answer(node, message)

    def forget(self, node: int) -> None:
        """Stops waiting for a node that has ended."""
        self.resumes.forget(node)
        self.gatherings.forget(node)
