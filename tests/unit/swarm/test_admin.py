"""`/ready` and `/status` of a swarm, as far as its nodes tell the supervisor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from awoke.swarm import protocol
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import Options
from awoke.swarm.supervisor import Supervisor

WHY = "no broker connected since 2026-01-31T12:00:00+00:00"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    found = Supervisor(Options(target="shop:app", nodes=1, socket=str(tmp_path / "shop.sock")))
    yield found
    found.close()


def test_a_node_without_brokers_makes_the_swarm_not_ready(supervisor: Supervisor) -> None:
    node = NodeHandle(1)
    ours, theirs = protocol.pair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        node.begin(ours, 1)
        node.state = NodeState.UP
        supervisor.control.nodes[1] = node
        assert supervisor.admin._why_not_ready() is None
        theirs.send(protocol.encode(protocol.Connections(WHY)))
        supervisor.control.on_message(node)
        assert supervisor.admin._why_not_ready() == f"node 1: {WHY}"
        theirs.send(protocol.encode(protocol.Connections("")))
        supervisor.control.on_message(node)
        assert supervisor.admin._why_not_ready() is None


def test_status_counts_partitions_as_soon_as_a_node_has_them(supervisor: Supervisor) -> None:
    node = NodeHandle(1)
    ours, theirs = protocol.pair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        node.begin(ours, 1)
        theirs.send(protocol.encode(protocol.Holds(3)))
        supervisor.control.on_message(node)
        assert node.status()["assigned"] == 3, "no sign of life has come yet"
