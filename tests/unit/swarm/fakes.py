"""A supervisor's parts that only remember what they were told."""

from __future__ import annotations

import socket
from typing import cast

from awoke.observe.web.deadlines import Deadline, Deadlines
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd

OPTIONS = SwarmOptions(target="a:b", nodes=2, socket="s")


class FakePidfd:
    """A process that remembers its signals, and ends when a test says so."""

    def __init__(self, pid: int = 1) -> None:
        self.pid, self.signals = pid, list[int]()
        self.exit_code: int | None = None
        self._ended, self._end = socket.socketpair()

    def fileno(self) -> int:
        return self._ended.fileno()

    def end(self, exit_code: int | None) -> None:
        """Ends the process; `None`: it can't be reaped yet."""
        self._end.close()
        self.exit_code = exit_code

    def send(self, number: int) -> bool:
        self.signals.append(number)
        return True

    def reap(self) -> int | None:
        return self.exit_code

    def close(self) -> None:
        self._ended.close()
        self._end.close()


class ManualDeadlines(Deadlines):
    """Deadlines that are due when a test says so."""

    def pass_(self, deadline: Deadline) -> None:
        """Lets this deadline pass; the others stay."""
        action = self._entries.pop(deadline)[2]
        action()

    def moment(self, deadline: Deadline) -> float:
        """Returns when it is due."""
        return self._entries[deadline][1]


class FakeHost:
    """Node control that only remembers."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.possible = 0
        """The number of times that a reload became possible."""

    def replace(self, node: NodeHandle, why: str) -> None:
        if node.state.is_serving:
            self.did.append(f"replace {node.number}: {why}")
            node.state = NodeState.FAILING

    def kill(self, node: NodeHandle, why: str) -> None:
        self.did.append(f"kill {node.number}: {why}")

    def stop(self, node: NodeHandle) -> None:
        self.did.append(f"stop {node.number}")
        node.state = NodeState.STOPPING

    def start(self, node: NodeHandle) -> None:
        self.did.append(f"start {node.number}")

    def start_queued(self) -> None:
        pass

    def on_reload_possible(self) -> None:
        self.possible += 1


def up(number: int, mold: int = 1) -> NodeHandle:
    """Returns a node that is up, forked from the mold of this generation."""
    node = NodeHandle(number)
    ours, theirs = socket.socketpair()
    theirs.close()
    node.begin(ours, mold)
    node.pidfd, node.state = cast(Pidfd, FakePidfd()), NodeState.UP
    return node


def signals_of(node: NodeHandle) -> list[int]:
    """Returns the signals that a node's process was sent."""
    return cast(FakePidfd, node.pidfd).signals
