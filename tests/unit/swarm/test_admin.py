"""`/ready` and `/status` of a swarm, as far as its nodes tell the supervisor."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from awoke.operate.commands import lines as command_lines
from awoke.swarm import protocol
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import Options
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.supervisor import Supervisor
from tests.unit.swarm.fakes import FakePidfd

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


def asked(supervisor: Supervisor, **command: object) -> dict[str, Any]:
    """Sends a command to the admin socket, and turns the loop until it is answered."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.connect(supervisor.admin._options.socket)
        talk.sendall(command_lines.encoded(dict(command)))
        talk.setblocking(False)
        while True:
            supervisor.loop.turn()
            with contextlib.suppress(BlockingIOError):
                return command_lines.decoded(talk.recv(65_536))


@pytest.mark.parametrize("is_of_a_node", [False, True])
def test_a_node_records_each_command_of_others_once(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch, is_of_a_node: bool
) -> None:
    node, user = NodeHandle(1), pwd.getpwuid(os.getuid()).pw_name
    ours, theirs = protocol.pair()
    supervisor.admin.open()
    with contextlib.closing(ours), contextlib.closing(theirs), contextlib.closing(supervisor.admin):
        theirs.setblocking(False)
        node.begin(ours, 1)
        node.state, node.pidfd = NodeState.UP, cast(Pidfd, FakePidfd(os.getpid() if is_of_a_node else 1))
        supervisor.control.nodes[1] = node
        monkeypatch.setattr(supervisor.commands, "scale", lambda count: None)
        monkeypatch.setattr(supervisor.commands, "stop", lambda: None)
        assert asked(supervisor, command="scale", nodes=2, reason="a test") == {"done": "scale"}
        assert "error" in asked(supervisor, command="scale", nodes=0)
        assert asked(supervisor, command="stop") == {"done": "stop"}
        assert asked(supervisor, command="status")["target"] == "shop:app"
        notes = list[protocol.Noted]()
        with contextlib.suppress(BlockingIOError):
            while True:
                found = protocol.decode(theirs.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
                assert isinstance(found, protocol.Noted)
                notes.append(found)
        node.pidfd.close()
    expected = [("scale", "done", {"nodes": 2}), ("scale", "error", {"nodes": 0}), ("stop", "done", {})]
    assert [(each.verb, each.result, each.arguments) for each in notes] == ([] if is_of_a_node else expected)
    assert {(each.who, each.supervisor) for each in notes} == (set() if is_of_a_node else {(user, os.getpid())})


def test_stacks_are_those_of_the_nodes_that_answer(supervisor: Supervisor) -> None:
    node, answers = NodeHandle(1), list[bytes]()
    ours, theirs = protocol.pair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        theirs.setblocking(False)
        node.begin(ours, 1)
        node.state = NodeState.UP
        supervisor.control.nodes[1] = node
        supervisor.admin._on_command(b'{"command": "stacks"}', answers.append)
        asked = protocol.decode(theirs.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
        assert asked == protocol.Gather("stacks", 1)
        text = '[{"owner": "shop", "name": "worker-1", "lines": ["a.py:1 in f"]}]'
        supervisor.admin._answers.gatherings.on_answer(1, protocol.Gathered(1, text))
        noted = protocol.decode(theirs.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
    (answer,) = map(command_lines.decoded, answers)
    assert (answer["text"], answer["stacks"][0]["node"]) == ("1 threads of node 1", 1)
    assert isinstance(noted, protocol.Noted)
    assert (noted.verb, noted.result, noted.text) == ("stacks", "done", "1 threads of node 1")


def test_a_command_for_a_partition_is_executed_by_its_node(supervisor: Supervisor) -> None:
    nodes, answers = [NodeHandle(1), NodeHandle(2)], list[dict[str, Any]]()
    with contextlib.ExitStack() as exit:
        for node in nodes:
            ours, theirs = (exit.enter_context(contextlib.closing(each)) for each in protocol.pair())
            node.begin(ours, 1)
            node.state = NodeState.UP
            supervisor.control.nodes[node.number] = node
        resumes = supervisor.admin._answers.resumes
        for done in (True, False):
            resumes.act("pause", {"topic": "t", "partition": 1}, "ann", "why", answers.append)
            request = resumes._requests
            asked = protocol.decode(theirs.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
            assert asked == protocol.Act("pause", {"topic": "t", "partition": 1}, "ann", "why", request)
            resumes.on_answer(1, protocol.Resumed(request, False, is_assigned=False, text="it is not here"))
            resumes.on_answer(2, protocol.Resumed(request, done, text="paused" if done else "it does not fail"))
    assert answers == [{"done": "pause", "text": "paused"}, {"failed": "it does not fail"}]
