"""The names of a node, and its word that its groups have assigned partitions."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

import awoke
from awoke.console.reporter import Reporter
from awoke.observe.events import PartitionsAssigned
from awoke.operate.commands.views import OperatorCommand, StackOfThread, SwarmNode
from awoke.runtime.process.inbox import Inbox
from awoke.runtime.process.runner import AppRunner
from awoke.swarm import protocol
from awoke.swarm.node import Node, shortened
from awoke.swarm.options import SwarmOptions


@pytest.mark.parametrize(
    ("settings", "options", "name"),
    [
        ({}, {}, "HOST.s.2"),
        ({}, {"name": "1a2b3c4d"}, "HOST.s.1a2b3c4d.2"),
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
        node = Node(2, control, app, SwarmOptions(target="a:b", nodes=2, socket="/tmp/s", **options), heard)
        assert node._names()["instance_id"] == (name and name.replace("HOST", socket.gethostname()))


def test_a_node_tells_of_its_partitions_when_all_groups_have_assigned_them() -> None:
    app = awoke.App("shop")
    for group in (None, "audit"):
        app.on("orders", group=group)(lambda message: None)
    ours, theirs = protocol.pair()
    with contextlib.closing(Inbox()) as heard, ours, theirs:
        node = Node(2, theirs, app, SwarmOptions(target="a:b", nodes=2, socket="/tmp/s"), heard)
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
        node = Node(2, theirs, app, SwarmOptions(target="a:b", nodes=2, socket="/tmp/s"), heard)
        runner = AppRunner(app)
        reporter = runner.extension(Reporter)
        assert reporter is not None
        assert not reporter._is_dirty
        killed = SwarmNode(node=1, state="restarting", restarts=1, last_error="killed")
        ours.send(protocol.encode(protocol.Swarm(7, [killed])))
        ours.shutdown(socket.SHUT_WR)
        node._execute(runner)
        supervisor_pid, nodes = reporter._reports.swarm
        assert (supervisor_pid, [each.node for each in nodes]) == (7, [1])
        assert reporter._is_dirty


def test_a_node_executes_a_command_and_tells_its_result() -> None:
    app = awoke.App("shop")
    app.on("orders")(lambda message: None)
    ours, theirs = protocol.pair()
    with contextlib.closing(Inbox()) as heard, ours, theirs:
        node = Node(2, theirs, app, SwarmOptions(target="a:b", nodes=2, socket="/tmp/s"), heard)
        place: dict[str, Any] = {"topic": "orders", "partition": 3}
        for number, verb, arguments in (
            (1, "resume", place),
            (2, "resume", {**place, "group": "other"}),
            (3, "health", {}),
            (4, "explode", {}),
            (5, "stacks", {}),
        ):
            command = OperatorCommand(verb=verb, arguments=arguments, who="ann", via="socket")
            ours.send(protocol.encode(protocol.Ask(number, command)))
        ours.shutdown(socket.SHUT_WR)
        node._execute(AppRunner(app))
        answers = [protocol.decode_node(ours.recv(protocol.MESSAGE_MAX)) for _ in range(5)]
    results = [each.result for each in answers if isinstance(each, protocol.NodeAnswered)]
    assert [(each.result, each.is_here) for each in results] == [
        ("failed_precondition", False),
        ("not_found", True),
        ("done", True),
        ("invalid_argument", True),
        ("done", True),
    ]
    assert "orders[3] is not assigned to this process" in results[0].text
    assert any("test_node.py" in line for stack in results[4].stacks for line in stack.lines)


def test_stacks_that_are_too_large_lose_their_outermost_calls() -> None:
    lines = [f"{at:03} \u00e9" for at in range(100)]
    short, long = (StackOfThread(name="n", owner="o", lines=each) for each in (lines[:1], lines))
    found = shortened([short, long], 200)
    assert found[0] == short
    assert found[1].lines == lines[-len(found[1].lines) :]
    assert 5 < len(found[1].lines) < 20
    assert shortened([long]) == [long]
