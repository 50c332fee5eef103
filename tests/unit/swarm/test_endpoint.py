"""The endpoint of a swarm: what it tells of its nodes, and one text of what they say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from awoke.swarm import protocol
from awoke.swarm.endpoint import merged
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import SwarmOptions
from awoke.swarm.supervisor import Supervisor

WHY = "no broker connected since 2026-01-31T12:00:00+00:00"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    found = Supervisor(SwarmOptions(target="shop:app", nodes=1, socket=str(tmp_path / "shop.sock")))
    yield found
    found.close()


def test_a_node_without_brokers_makes_the_swarm_not_ready(supervisor: Supervisor) -> None:
    node = NodeHandle(1)
    ours, theirs = protocol.pair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        node.begin(ours, 1)
        node.state = NodeState.UP
        supervisor.control.nodes[1] = node
        assert supervisor.endpoint.why_not_ready() is None
        theirs.send(protocol.encode(protocol.BrokerConnections(WHY)))
        supervisor.control.on_message(node)
        assert supervisor.endpoint.why_not_ready() == f"node 1: {WHY}"
        theirs.send(protocol.encode(protocol.BrokerConnections("")))
        supervisor.control.on_message(node)
        assert supervisor.endpoint.why_not_ready() is None


def test_status_counts_partitions_as_soon_as_a_node_has_them(supervisor: Supervisor) -> None:
    node = NodeHandle(1)
    ours, theirs = protocol.pair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        node.begin(ours, 1)
        theirs.send(protocol.encode(protocol.Holds(3)))
        supervisor.control.on_message(node)
        assert node.status()["assigned"] == 3, "no sign of life has come yet"


def test_metrics_of_nodes_are_one_text() -> None:
    head = "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\n"
    one = head + 'jobs_total{topic="t"} 1.0\n# HELP up Up.\n# TYPE up gauge\nup 1.0\n'
    two = head + 'jobs_total{topic="t"} 2.0\n'
    assert merged({1: one, 2: two}) == (
        head
        + 'jobs_total{node="1",topic="t"} 1.0\njobs_total{node="2",topic="t"} 2.0\n'
        + '# HELP up Up.\n# TYPE up gauge\nup{node="1"} 1.0\n'
    )
    assert merged({}) == ""
