"""The names of a node, and its word that its groups have assigned partitions."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

import awoke
from awoke.console.reporter import Reporter
from awoke.observe.events import PartitionsAssigned
from awoke.runtime.process.inbox import Inbox
from awoke.runtime.process.runner import AppRunner
from awoke.swarm import protocol
from awoke.swarm.node import Node
from awoke.swarm.options import Options


@pytest.mark.parametrize(
    ("settings", "options", "name"),
    [
        ({}, {}, "HOST.s.2"),
        ({"instance_id": "shop"}, {}, "shop-2"),
        ({"instance_id": "shop"}, {"static_members": False}, "shop-2"),
        ({}, {"static_members": False}, None),
        ({}, {"kafka": {"group.instance.id": "mine"}}, None),
        ({}, {"kafka": {"group.protocol": "consumer"}}, None),
        ({"kafka": {"group.protocol": "consumer"}}, {}, None),
    ],
)
def test_a_node_has_a_name_in_its_group(settings: dict[str, Any], options: dict[str, Any], name: str | None) -> None:
    app = awoke.App("shop", **settings)
    with contextlib.closing(Inbox()) as heard, socket.socket() as control:
        node = Node(2, control, app, Options(target="a:b", nodes=2, socket="/tmp/s", **options), heard)
        assert node._names()["instance_id"] == (name and name.replace("HOST", socket.gethostname()))


def test_a_node_tells_of_its_partitions_when_all_groups_have_assigned_them() -> None:
    app = awoke.App("shop")
    for group in (None, "audit"):
        app.on("orders", group=group)(lambda message: None)
    ours, theirs = protocol.pair()
    with contextlib.closing(Inbox()) as heard, ours, theirs:
        node = Node(2, theirs, app, Options(target="a:b", nodes=2, socket="/tmp/s"), heard)
        runner = AppRunner(app)
        for group in ("audit", "audit", "shop"):
            node._on_assigned(runner, PartitionsAssigned(client=group, partitions=[], group=group))
            node._say(protocol.Holds(0))
        said = [protocol.decode_node(ours.recv(protocol.MESSAGE_MAX)) for _ in range(4)]
        assert said == [protocol.Holds(0), protocol.Holds(0), protocol.Assigned(), protocol.Holds(0)]


def test_what_the_supervisor_says_of_its_nodes_is_reported_soon() -> None:
    app = awoke.App("shop", console=True)
    ours, theirs = protocol.pair()
    with contextlib.closing(Inbox()) as heard, ours, theirs:
        node = Node(2, theirs, app, Options(target="a:b", nodes=2, socket="/tmp/s"), heard)
        runner = AppRunner(app)
        reporter = runner.extension(Reporter)
        assert reporter is not None
        assert not reporter._is_dirty
        ours.send(protocol.encode(protocol.Swarm(7, [protocol.NodeOfSwarm(1, "restarting", 1, "killed")])))
        ours.shutdown(socket.SHUT_WR)
        node._execute(runner)
        supervisor_pid, nodes = reporter._reports.swarm
        assert (supervisor_pid, [each.node for each in nodes]) == (7, [1])
        assert reporter._is_dirty
