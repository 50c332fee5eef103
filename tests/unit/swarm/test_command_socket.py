"""The command socket of a swarm: who executes a command, and who records it."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from awoke.operate.commands import lines
from awoke.operate.commands.views import Audit, CommandResult, StackOfThread
from awoke.swarm import protocol
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeState
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.supervisor import Supervisor
from tests.unit.swarm.fakes import FakePidfd


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    found = Supervisor(SwarmOptions(target="shop:app", nodes=1, socket=str(tmp_path / "shop.sock")))
    yield found
    found.close()


def asked(supervisor: Supervisor, **command: object) -> dict[str, Any]:
    """Sends a command to the admin socket, and turns the loop until it is answered."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.connect(supervisor.socket.path)
        talk.sendall(lines.encoded(dict(command)))
        talk.setblocking(False)
        while True:
            supervisor.loop.turn()
            with contextlib.suppress(BlockingIOError):
                return lines.decoded(talk.recv(65_536))


@pytest.mark.parametrize("is_of_a_node", [False, True])
def test_a_node_records_each_command_of_others_once(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch, is_of_a_node: bool
) -> None:
    node, user = NodeHandle(1), pwd.getpwuid(os.getuid()).pw_name
    ours, theirs = protocol.pair()
    supervisor.socket.open()
    with contextlib.closing(ours), contextlib.closing(theirs), contextlib.closing(supervisor.socket):
        theirs.setblocking(False)
        node.begin(ours, 1)
        node.state, node.pidfd = NodeState.UP, cast(Pidfd, FakePidfd(os.getpid() if is_of_a_node else 1))
        supervisor.control.nodes[1] = node
        monkeypatch.setattr(supervisor.commands, "scale", lambda count: "it scales")
        monkeypatch.setattr(supervisor.commands, "stop", lambda: None)
        assert asked(supervisor, command="scale", nodes=2, reason="a test") == {
            "done": "scale",
            "text": "it scales",
        }
        assert "error" in asked(supervisor, command="scale", nodes=0)
        assert asked(supervisor, command="stop")["done"] == "stop"
        assert asked(supervisor, command="status")["target"] == "shop:app"
        records = list[Audit]()
        with contextlib.suppress(BlockingIOError):
            while True:
                found = protocol.decode(theirs.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
                assert isinstance(found, protocol.AuditRecord)
                records.append(found.audit)
        node.pidfd.close()
    expected = [("scale", "done", {"nodes": 2}), ("scale", "invalid_argument", {"nodes": 0}), ("stop", "done", {})]
    assert [(each.verb, each.result, each.arguments) for each in records] == ([] if is_of_a_node else expected)
    by = (user, "socket", f"supervisor {os.getpid()}")
    assert {(each.who, each.via, each.node) for each in records} == (set() if is_of_a_node else {by})


class Nodes:
    """Two nodes that are up, and the other ends of their control sockets."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor, self.ends, self.answers = supervisor, list[socket.socket](), list[bytes]()
        for number in (1, 2):
            node = supervisor.control.nodes[number] = NodeHandle(number)
            ours, theirs = protocol.pair()
            theirs.setblocking(False)
            node.begin(ours, 1)
            node.state = NodeState.UP
            self.ends.append(theirs)

    def send(self, line: bytes) -> None:
        self.supervisor.socket.on_command(line, self.answers.append)

    def heard(self, node: int) -> Any:
        return protocol.decode(self.ends[node - 1].recv(protocol.MESSAGE_MAX), protocol.TO_NODE)

    def says(self, node: int, result: CommandResult) -> None:
        self.ends[node - 1].send(protocol.encode(protocol.NodeAnswered(1, result)))
        self.supervisor.control.on_message(self.supervisor.control.nodes[node])

    @property
    def answer(self) -> dict[str, Any]:
        (answer,) = map(lines.decoded, self.answers)
        return answer

    def close(self) -> None:
        for node, end in zip(self.supervisor.control.nodes.values(), self.ends, strict=True):
            node.close()
            end.close()


@pytest.fixture
def nodes(supervisor: Supervisor) -> Iterator[Nodes]:
    found = Nodes(supervisor)
    yield found
    found.close()


def test_stacks_are_those_of_the_nodes_that_answer(nodes: Nodes) -> None:
    nodes.send(b'{"command": "stacks"}')
    assert nodes.heard(1).command.verb == "stacks"
    stack = StackOfThread(owner="shop", name="worker-1", lines=["a.py:1 in f"])
    nodes.says(1, CommandResult(verb="stacks", text="1 threads", stacks=[stack]))
    nodes.supervisor.questions.forget(2)
    assert (nodes.answer["text"], nodes.answer["stacks"][0]["node"]) == ("node 1: 1 threads", 1)
    record = nodes.heard(1).audit
    assert (record.verb, record.result, record.text) == ("stacks", "done", "node 1: 1 threads")


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (CommandResult(verb="pause", text="it is paused"), {"done": "pause", "text": "it is paused"}),
        (CommandResult(verb="pause", result="not_found", text="no such group"), {"error": "no such group"}),
        (CommandResult(verb="pause", result="unavailable", text="no brokers"), {"failed": "no brokers"}),
    ],
)
def test_a_command_for_a_partition_is_executed_by_its_node(
    nodes: Nodes, result: CommandResult, answer: dict[str, str]
) -> None:
    nodes.send(b'{"command": "pause", "topic": "t", "partition": 1, "group": null, "reason": "why"}')
    asked = nodes.heard(2)
    assert (asked.request, asked.command.arguments) == (1, {"topic": "t", "partition": 1})
    assert (asked.command.verb, asked.command.who, asked.command.reason) == ("pause", "unknown", "why")
    nodes.says(1, CommandResult(verb="pause", result="failed_precondition", text="it is not here", is_here=False))
    nodes.says(2, result)
    assert nodes.answer == answer


def test_a_client_waits_for_the_end_of_a_reload_and_a_node_does_not(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = list[Any]()
    monkeypatch.setattr(nodes.supervisor.commands, "reload", ends.append)
    nodes.send(b'{"command": "reload"}')
    assert "a reload is under way already" in nodes.answer["error"]
    nodes.answers.clear()

    def begin(end: Any) -> bool:
        ends.append(end)
        return True

    monkeypatch.setattr(nodes.supervisor.commands, "reload", begin)
    for why, answer in ((None, {"done": "reload"}), ("no good", {"failed": "no good"})):
        nodes.send(b'{"command": "reload"}')
        assert nodes.answers == []
        ends[-1](why)
        assert answer.items() <= nodes.answer.items()
        nodes.answers.clear()
    monkeypatch.setattr(nodes.supervisor.socket, "_is_node", lambda peer: True)
    nodes.send(b'{"command": "reload"}')
    assert nodes.answer == {"done": "reload", "text": "the reload has begun"}
    ends[-1](None)
    assert len(nodes.answers) == 1
