"""`awoke resume` in one process and in a swarm: what is asked, what is answered, and what a rebalance has ended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import awoke
from awoke.cli.swarm import ask
from awoke.cli.threads import threads as show_threads
from awoke.runtime.server import AppRunner
from awoke.swarm import protocol, resumes
from awoke.swarm.app_socket import open_app_socket
from awoke.swarm.node_handle import NodeHandle, NodeState
from awoke.swarm.resumes import Resumes
from awoke.web.loop import Loop

COMMAND = b'{"command": "resume", "topic": "t", "partition": 1}\n'


class FakeApp:
    """An app with one paused partition, t[1]."""

    def __init__(self) -> None:
        self.paused = {("t", 1)}
        self.failing = [42]
        self.error: Exception | None = None

    def resume(self, topic: str, partition: int) -> bool:
        if self.error is not None:
            raise self.error
        was_paused = (topic, partition) in self.paused
        self.paused.discard((topic, partition))
        return was_paused

    def skip(self, topic: str, partition: int, offset: int) -> bool:
        return offset in self.failing

    def blocking(self, topic: str, partition: int) -> list[int]:
        return self.failing

    def is_assigned(self, topic: str, partition: int) -> bool:
        return (topic, partition) in {("t", 1), ("t", 2)}

    def threads(self) -> list[tuple[str, str, str]]:
        return [("t[1]", "flush", "here")]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "app.sock")


@pytest.fixture
def app(path: str) -> Iterator[FakeApp]:
    app = FakeApp()
    with open_app_socket(cast(awoke.App, app), path):
        yield app


def client(path: str, data: bytes = b"") -> socket.socket:
    talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    talk.settimeout(20)
    talk.connect(path)
    talk.sendall(data)
    return talk


def answer(path: str, data: bytes) -> Any:
    with client(path, data) as talk:
        return msgspec.json.decode(talk.recv(65536))


# The commands of a single process.


def test_a_partition_is_resumed_once(path: str, app: FakeApp) -> None:
    assert answer(path, COMMAND) == {"done": "resume"}
    assert answer(path, COMMAND) == {"failed": "t[1] is neither paused nor stuck"}


def test_a_message_that_fails_is_skipped(path: str, app: FakeApp) -> None:
    command = b'{"command": "skip", "topic": "t", "partition": 1, "offset": %s}\n'
    assert answer(path, command % b"42") == {"done": "skip"}
    assert answer(path, command % b"41") == {
        "failed": "t[1] is not held up at offset 41, but by the message at offset 42"
    }
    for wrong in (b"-1", b"true", b'"42"', b"null"):
        assert "no offset" in answer(path, command % wrong)["error"]


def test_the_threads_of_a_single_process_are_told(path: str, app: FakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    show_threads("shop:app", socket=path, as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out) == [{"owner": "t[1]", "name": "flush", "started_at": "here"}]
    with pytest.raises(awoke.ConfigError, match="neither MODULE:APP nor a port"):
        show_threads("70000")


def test_the_command_line_asks_a_single_process(path: str, app: FakeApp) -> None:
    assert ask("shop:app", path, "resume", topic="t", partition=1) == {"done": "resume"}
    with pytest.raises(awoke.AwokeError, match=r"resume failed: t\[1\] is neither paused nor stuck") as caught:
        ask("shop:app", path, "resume", topic="t", partition=1)
    assert not isinstance(caught.value, awoke.ConfigError)
    with pytest.raises(awoke.ConfigError, match="runs in a single process"):
        ask("shop:app", path, "status")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no json\n", "JSON"),
        (b"[]\n", "object"),
        (b"{}\n", "single process"),
        (b'{"command": "resume"}\n', "no topic"),
        (b'{"command": "resume", "topic": "t", "partition": -1}\n', "no partition"),
        (b'{"command": "resume", "topic": "t", "partition": true}\n', "no partition"),
        (b'{"command": "resume", "topic": ["t"], "partition": 0}\n', "no topic"),
    ],
)
def test_a_wrong_command_is_an_error_and_the_next_one_is_obeyed(
    path: str, app: FakeApp, data: bytes, said: str
) -> None:
    assert said in answer(path, data)["error"]
    assert answer(path, COMMAND) == {"done": "resume"}


def test_a_partition_that_is_taken_away_meanwhile_is_not_resumed(path: str, app: FakeApp) -> None:
    app.error = awoke.FencedError("taken away")
    assert "neither paused nor stuck" in answer(path, COMMAND)["failed"]


def test_an_app_runs_without_a_socket_that_is_taken(path: str, app: FakeApp, caplog: pytest.LogCaptureFixture) -> None:
    with open_app_socket(cast(awoke.App, FakeApp()), path):
        assert "no commands (awoke resume, skip, threads) for this process" in caplog.text
    assert answer(path, COMMAND) == {"done": "resume"}


def test_the_thread_and_the_file_are_gone_at_the_end(path: str) -> None:
    with open_app_socket(cast(awoke.App, FakeApp()), path), client(path, b"half a requ"):
        assert "awoke-commands" in {thread.name for thread in threading.enumerate()}
    assert "awoke-commands" not in {thread.name for thread in threading.enumerate()}
    assert not Path(path).exists()


# The resume of a swarm.


class Nodes:
    """Nodes as the supervisor sees them, with the other end of their control sockets."""

    def __init__(self, count: int) -> None:
        self.loop = Loop()
        self.handles = {number: NodeHandle(number) for number in range(1, count + 1)}
        self.ends: dict[int, socket.socket] = {}
        for number, node in self.handles.items():
            node.control, self.ends[number] = protocol.pair()
            node.state = NodeState.UP
        self.resumes = Resumes(self.loop, self.handles)
        self.answers: list[dict[str, Any]] = []

    def begin(self, offset: int | None = None) -> None:
        self.resumes.begin("t", 1, self.answers.append, offset)

    def close(self) -> None:
        for number, node in self.handles.items():
            node.close()
            self.ends[number].close()
        self.loop.close()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = Nodes(3)
    yield nodes
    nodes.close()


def test_all_nodes_are_asked_and_the_one_that_has_resumed_is_enough(nodes: Nodes) -> None:
    nodes.begin()
    for end in nodes.ends.values():
        question = protocol.decode(end.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
        assert question == protocol.Resume("t", 1, 1)
    nodes.resumes.on_answer(3, 1, False)
    assert nodes.answers == []
    nodes.resumes.on_answer(2, 1, True)
    assert nodes.answers == [{"done": "resume"}]
    nodes.resumes.on_answer(1, 1, True)  # Too late to matter.
    assert len(nodes.answers) == 1
    assert nodes.loop.deadlines.next_in_s() is None


def test_no_node_that_holds_it_paused_is_a_failure(nodes: Nodes) -> None:
    nodes.begin()
    for number in nodes.handles:
        nodes.resumes.on_answer(number, 1, False)
    assert nodes.answers == [{"failed": "t[1] is neither paused nor stuck on any node"}]


def test_nodes_that_do_not_answer_in_time_are_named(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumes, "ANSWER_WITHIN_S", 0.01)
    nodes.begin()
    nodes.resumes.on_answer(2, 1, False)
    nodes.loop.turn()
    (found,) = nodes.answers
    assert "on any node that answered; nodes 1, 3 did not answer within" in found["failed"]


def test_a_node_that_ends_is_waited_for_no_longer(nodes: Nodes) -> None:
    nodes.begin()
    nodes.begin()
    for number in nodes.handles:
        nodes.resumes.forget(number)
    assert nodes.answers == [{"failed": "t[1] is neither paused nor stuck on any node"}] * 2


def test_a_swarm_without_nodes_says_so(nodes: Nodes) -> None:
    for node in nodes.handles.values():
        node.state = NodeState.BOOTING
    nodes.begin()
    assert nodes.answers == [{"failed": "no node is up"}]


def test_all_nodes_are_asked_to_skip_and_the_one_that_has_skipped_is_enough(nodes: Nodes) -> None:
    nodes.begin(42)
    for end in nodes.ends.values():
        question = protocol.decode(end.recv(protocol.MESSAGE_MAX), protocol.TO_NODE)
        assert question == protocol.Skip("t", 1, 42, 1)
    nodes.resumes.on_answer(3, 1, False)
    nodes.resumes.on_answer(2, 1, True)
    assert nodes.answers == [{"done": "skip"}]


@pytest.mark.parametrize(
    ("blocking", "said"),
    [
        ([], "no message of t[1] fails on any node"),
        ([41], "t[1] is not held up at offset 42, but by the message at offset 41"),
        ([7, 41], "t[1] is not held up at offset 42, but by the messages at offsets 7, 41"),
        ([*range(21)], f"at offsets {', '.join(map(str, range(20)))}…"),
    ],
)
def test_a_skip_of_another_message_says_which_fail(nodes: Nodes, blocking: list[int], said: str) -> None:
    nodes.begin(42)
    for number in nodes.handles:
        nodes.resumes.on_answer(number, 1, False, blocking if number == 2 else [])
    assert nodes.answers[0]["failed"].endswith(said)


# In the process.


class FakeAssignment:
    """An assignment of a partition that was paused."""

    def __init__(self, is_current: bool) -> None:
        self.is_current, self.is_resumed = is_current, False

    def resume(self) -> None:
        self.is_resumed = True


@pytest.mark.parametrize("is_current", [True, False])
def test_a_pause_that_a_rebalance_has_ended_is_not_resumed(is_current: bool) -> None:
    server, assignment = AppRunner(awoke.App("resume")), FakeAssignment(is_current)
    server.paused[("t", 1)] = (cast(Any, assignment), ValueError("no good"))
    assert server.resume("t", 1) is is_current
    assert not server.resume("t", 1)


def test_a_partition_that_another_process_holds_is_named_as_such(app: FakeApp, path: str) -> None:
    for command in ("resume", "skip"):
        with pytest.raises(awoke.AwokeError, match=r"this process does not hold t\[9\]: ask the process"):
            ask("shop:app", path, command, topic="t", partition=9, offset=1)


def test_a_target_without_a_colon_is_explained() -> None:
    with pytest.raises(awoke.ConfigError, match="'shop' names no app: say MODULE:APP, as in shop:app"):
        ask("shop", None, "resume", topic="t", partition=1)


def test_a_partition_that_no_node_holds_is_named_as_such() -> None:
    request = resumes.Request("skip", "t[9]", 1, set(), lambda answer: None)
    assert resumes.why(request) == "no message of t[9] fails on any node"
    request.is_held = False
    assert resumes.why(request) == "no node holds t[9]: ask the process of the group that holds it"
