"""Messages of molds, nodes and clients to a supervisor: none ends the supervisor, which would end every node."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import awoke
from awoke.observe.web import http
from awoke.observe.web.deadlines import Deadline
from awoke.operate.commands import lines
from awoke.operate.commands.audit import audit_of
from awoke.operate.commands.verbs import checked
from awoke.operate.commands.views import CommandResult, StackOfThread
from awoke.swarm import endpoint, protocol
from awoke.swarm.mold_handle import MoldHandle
from awoke.swarm.node_handle import NodeHandle
from awoke.swarm.nodes import NodeEvent, NodeState, NodeTimer
from awoke.swarm.options import SwarmOptions
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.supervisor import Supervisor

DEEP = b"[" * 60_000
BIG = str(10**30).encode()
RESTART = Deadline(NodeTimer.RESTART, 1)

NODE_FRAMES = [
    b"x",
    b"J",
    b"J{}",
    b"J[]",
    b"J" + DEEP,
    b'J{"kind":"ready","more":' + DEEP,
    b'J{"kind":[]}',
    b'J{"kind":"failed"}',
    b'J{"kind":"failed","text":5}',
    b'J{"kind":"answered","request":"1","result":{"verb":"x"}}',
    b'J{"kind":"answered","request":[],"result":{"verb":"x"}}',
    b'J{"kind":"answered","request":' + BIG + b',"result":{"verb":"x"}}',
    b'J{"kind":"answered","request":1}',
    b'J{"kind":"answered","request":1,"result":null}',
    b'J{"kind":"answered","request":1,"result":{"verb":"x","is_here":"no","stacks":null}}',
    b'J{"kind":"answered","request":1,"result":{"verb":"x","threads":[{"owner":7}]}}',
    b'J{"kind":"answered","request":1,"result":{"verb":"x","status":{"a":' + DEEP + b"}}",
    b'J{"kind":"failed","text":"\xff"}',
    b"V",
    b"V" + bytes(100),
    b"V" + b"\xff" * protocol.VITALS.size,
    bytes(150_000),
]
MOLD_FRAMES = [
    *NODE_FRAMES,
    b'J{"kind":"forked","node":1}',
    b'J{"kind":"forked","node":[],"pid":1}',
    b'J{"kind":"forked","node":1,"pid":-1}',
    b'J{"kind":"forked","node":1,"pid":' + BIG + b"}",
    b'J{"kind":"ready","resident_bytes":"many"}',
]


class Watched:
    """A supervisor with a node and a mold. The test has their sockets' other ends. One child is both processes."""

    def __init__(self, folder: Path) -> None:
        self.child = subprocess.Popen(["sleep", "600"])
        self.supervisor = Supervisor(SwarmOptions(target="a:b", nodes=1, socket=str(folder / "s")))
        ours, self.node_end = protocol.pair()
        self.node = NodeHandle(1)
        self.node.begin(ours, 1)
        self.node.state = NodeState.FORKING
        self.supervisor.control.nodes[1] = self.node
        mold_ours, self.mold_end = protocol.pair()
        self.mold = MoldHandle(1, Pidfd.open(self.child.pid), mold_ours)

    def boot(self) -> None:
        """Tells of the node's process."""
        self.node.pidfd, self.node.state = Pidfd.open(self.child.pid), NodeState.BOOTING

    def node_says(self, data: bytes, *descriptors: int) -> None:
        socket.send_fds(self.node_end, [data], descriptors)
        self.supervisor.control.on_message(self.node)

    def mold_says(self, data: bytes, *descriptors: int) -> None:
        socket.send_fds(self.mold_end, [data], descriptors)
        self.supervisor.control.molds._on_says(self.mold)

    def close(self) -> None:
        self.node.close()
        self.mold.close()
        self.node_end.close()
        self.mold_end.close()
        self.supervisor.close()
        self.child.kill()
        self.child.wait()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.close()


@pytest.fixture
def open_files() -> Iterator[None]:
    """Fails a test that leaves a descriptor open."""
    gc.collect()  # What earlier tests have left to it.
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("data", NODE_FRAMES, ids=lambda data: repr(data[:40]))
def test_no_message_of_a_node_ends_the_supervisor(watched: Watched, data: bytes) -> None:
    watched.boot()
    watched.node_says(data)
    watched.node_says(protocol.encode(protocol.NodeReady()))
    assert watched.node.state is NodeState.UP
    watched.node_says(data)
    assert answer_of(watched, b'{"command":"status"}\n')["nodes"][0]["node"] == 1


@pytest.mark.parametrize("data", MOLD_FRAMES, ids=lambda data: repr(data[:40]))
def test_no_message_of_a_mold_ends_the_supervisor(watched: Watched, data: bytes) -> None:
    watched.mold_says(data)
    assert watched.node.state in (NodeState.FORKING, NodeState.WAITING)


def test_a_node_whose_descriptor_does_not_come_is_started_again_later(open_files: None, tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.mold_says(protocol.encode(protocol.Forked(1, watched.child.pid)))
    assert watched.node.state is NodeState.WAITING
    assert watched.node_end.recv(1) == b"", "its process learns that it is not wanted"
    assert RESTART in watched.supervisor.loop.deadlines
    assert "ulimit" in watched.node.last_error
    watched.close()


def test_what_is_no_process_is_not_taken_for_one(open_files: None, watched: Watched) -> None:
    with open(os.devnull) as file:
        watched.mold_says(protocol.encode(protocol.Forked(1, watched.child.pid)), file.fileno())
    assert watched.node.state is NodeState.WAITING


def test_descriptors_that_are_not_wanted_are_closed(open_files: None, tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.boot()
    with open(os.devnull) as file:
        for data in (b"x", b"", protocol.encode(protocol.NodeReady()), protocol.encode(protocol.Tripwire())):
            watched.node_says(data, *[file.fileno()] * 4)
            watched.mold_says(data, *[file.fileno()] * 4)
    assert watched.node.tripwire is None, "a file tells of no end"
    watched.close()


def test_descriptors_of_others_are_not_inherited(watched: Watched) -> None:
    watched.boot()
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    watched.node_says(protocol.encode(protocol.Tripwire()), reading)
    assert watched.node.tripwire is not None
    assert not os.get_inheritable(watched.node.tripwire)
    os.close(reading)
    os.close(writing)


def test_a_process_of_another_user_is_not_signalled(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, number: int) -> None:
        raise PermissionError("another user's")

    pidfd = Pidfd.open(os.getpid())
    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    assert not pidfd.send(signal.SIGTERM)
    assert Pidfd.received(os.dup(pidfd.fileno()), 1) is None
    pidfd.close()


def test_without_descriptors_a_node_is_started_later(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Any:
        raise OSError(24, "Too many open files")

    watched.supervisor.control.handle(watched.node, NodeEvent.NOT_FORKED)
    monkeypatch.setattr(watched.supervisor.control.roll, "mold_for", lambda node: watched.mold)
    monkeypatch.setattr(protocol, "pair", full)
    watched.supervisor.control.start(watched.node)
    assert watched.node.state is NodeState.WAITING
    assert "Too many open files" in watched.node.last_error
    assert RESTART in watched.supervisor.loop.deadlines


# Commands.

COMMANDS = [
    b"\n",
    b"null\n",
    DEEP + b"\n",
    b'{"command":"status","more":' + DEEP + b"\n",
    b'{"command":[]}\n',
    b'{"command":{"a":1}}\n',
    b'{"command":"\xff"}\n',
    b'{"command":"dump"}\n',
    b'{"command":"dump","node":[]}\n',
    b'{"command":"dump","node":"1"}\n',
    b'{"command":"dump","node":true}\n',
    b'{"command":"dump","node":' + BIG + b"}\n",
    b'{"command":"scale","nodes":"2"}\n',
    b'{"command":"scale","nodes":true}\n',
    b'{"command":"scale","nodes":1.5}\n',
    b'{"command":"scale","nodes":1000000000}\n',
    b'{"command":"resume","topic":"t","partition":' + BIG + b"}\n",
    b'{"command":"skip","topic":"t","partition":0,"offset":' + BIG + b"}\n",
    b'{"command":"skip","topic":"t","partition":0,"offset":{}}\n',
    b'{"command":"resume","topic":"' + b"t" * 60_000 + b'","partition":0}\n',
    b'{"command":"resume","topic":"t","partition":0,"' + b"n" * 60_000 + b'":1}\n',
    b'{"command":"' + b"c" * 60_000 + b'"}\n',
]


def answer_of(watched: Watched, request: bytes) -> dict[str, Any]:
    answers: list[bytes] = []
    watched.supervisor.socket.on_command(request, answers.append)
    (answer,) = answers
    found: dict[str, Any] = msgspec.json.decode(answer)
    return found


@pytest.mark.parametrize("request_", COMMANDS, ids=lambda data: repr(data[:50]))
def test_a_wrong_command_is_answered_with_a_short_error(watched: Watched, request_: bytes) -> None:
    answer = answer_of(watched, request_)
    assert set(answer) == {"error"}
    assert len(answer["error"]) < 300


# What nodes say in answers to questions.


@pytest.mark.parametrize(
    "text", ["", "# ", "#", "# HELP", "# HELP x", "x{", "[", "{}", '["a", 5]', "[" * 60_000, "[[]]"]
)
def test_what_a_node_says_of_itself_may_be_anything(watched: Watched, text: str) -> None:
    watched.node.state = NodeState.UP
    nodes, texts = watched.supervisor.control.nodes, {1: text}
    endpoint.merged(texts)
    assert endpoint.health_of(nodes, texts) == ["node 1: can't be understood"]
    result = CommandResult(verb="threads", text=text, stacks=[StackOfThread(name=text, owner=text, lines=[text])])
    endpoint.threads_page({1: result})


# Fuzzed.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
FIELDS = ("kind", "command", "node", "nodes", "pid", "text", "request", "result", "verb", "topic", "partition")
KINDS = ("ready", "forked", "answered", "failed", "status", "dump", "scale", "resume", "skip", "fork")
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(KINDS), max_size=6)
NAMED = st.tuples(OBJECTS, st.sampled_from(KINDS)).map(lambda found: found[0] | {"kind": found[1], "command": found[1]})
WIRE = (NAMED | JSON).map(lambda document: msgspec.json.encode(document)) | st.binary(max_size=200)


@given(WIRE, st.sampled_from([b"", b"J", b"V"]))
def test_fuzz_messages_decode_or_are_refused(data: bytes, mark: bytes) -> None:
    decoders: list[Any] = [protocol.FROM_MOLD, protocol.TO_MOLD, protocol.FROM_NODE, protocol.TO_NODE]
    for decoder in decoders:
        with contextlib.suppress(ValueError):
            found = protocol.decode(mark + data, decoder)
            assert protocol.decode(protocol.encode(found), decoder) == found
    with contextlib.suppress(ValueError):
        protocol.decode_node(mark + data)


@given(WIRE, st.sampled_from([b"J", b"V"]))
def test_fuzz_a_supervisor_takes_any_message(watched: Watched, data: bytes, mark: bytes) -> None:
    if watched.node.pidfd is None:
        watched.boot()
    watched.node_says(mark + data)
    watched.mold_says(mark + data)


@given(WIRE)
def test_fuzz_commands_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(awoke.ConfigError):
        command = lines.command_of(data, None, "a:b")
        audit_of(command, CommandResult(verb=command.verb))
        checked(command.verb, command.arguments)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"GET /{text}".encode()))
def test_fuzz_requests_over_http_are_read_or_refused(head: bytes) -> None:
    http.is_complete(bytearray(head))
    request = http.request_of(head)
    if request is not None:
        http.is_allowed(request.host, frozenset())


@given(st.text(max_size=60) | st.from_regex(r"# [A-Z]{0,4} ?[a-z]{0,3}( .*)?\n[a-z]+(\{.*\})? ?1?"))
def test_fuzz_texts_of_nodes_are_merged(text: str) -> None:
    endpoint.merged({1: text, 2: "# HELP up Up.\n# TYPE up gauge\nup 1.0\n"})
