"""`awoke resume`, `skip` and `threads` of a single process."""

from __future__ import annotations

import os
import pwd
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
from awoke.operate.commands.verbs import checked
from awoke.operate.commands.views import Audit
from awoke.rpc.errors import FailedPrecondition
from awoke.swarm.app_socket import open_app_socket

COMMAND = b'{"command": "resume", "topic": "t", "partition": 1}\n'


class FakeRunner:
    """A process that keeps the records of its commands, and executes those of a console."""

    def __init__(self) -> None:
        self.records: list[Audit] = []
        self.asked: list[Any] = []

    def extension(self, kind: type[Any]) -> FakeRunner:
        return self

    @property
    def actions(self) -> FakeRunner:
        return self

    def record(self, audit: Audit) -> None:
        self.records.append(audit)

    def perform(self, verb: str, arguments: Any, who: str, reason: str) -> str:
        checked(verb, arguments)
        self.asked.append((verb, dict(arguments), who, reason))
        if verb == "seek":
            raise FailedPrecondition("it is not assigned")
        return "the effect"


class FakeApp:
    """An app with one paused partition, t[1]."""

    def __init__(self) -> None:
        self.paused = {("t", 1)}
        self.failing = [42]
        self.error: Exception | None = None
        self._runner = FakeRunner()

    def resume(self, topic: str, partition: int, *, group: str | None) -> bool:
        if self.error is not None:
            raise self.error
        was_paused = (topic, partition) in self.paused
        self.paused.discard((topic, partition))
        return was_paused

    def skip(self, topic: str, partition: int, offset: int, *, group: str | None) -> bool:
        return offset in self.failing

    def blocking(self, topic: str, partition: int, *, group: str | None) -> list[int]:
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
def test_a_wrong_command_is_an_error_and_the_next_one_is_executed(
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


def test_a_partition_that_another_process_holds_is_named_as_such(app: FakeApp, path: str) -> None:
    for command in ("resume", "skip"):
        with pytest.raises(awoke.AwokeError, match=r"this process does not hold t\[9\]: ask the process"):
            ask("shop:app", path, command, topic="t", partition=9, offset=1)


def test_each_command_is_recorded_once_with_the_user_of_the_client(path: str, app: FakeApp) -> None:
    user = pwd.getpwuid(os.getuid()).pw_name
    place = b'"topic": "t", "partition": 1'
    assert answer(path, b'{"command": "pause", "reason": "a test", %s}\n' % place) == {
        "done": "pause",
        "text": "the effect",
    }
    assert answer(path, b'{"command": "seek", "offset": 3, %s}\n' % place) == {"failed": "it is not assigned"}
    assert "needs the argument" in answer(path, b'{"command": "dead_letter", %s}\n' % place)["error"]
    assert answer(path, COMMAND) == {"done": "resume"}
    assert answer(path, COMMAND)["failed"]
    assert answer(path, b'{"command": "threads"}\n')["done"] == "threads"
    arguments = {"topic": "t", "partition": 1}
    assert app._runner.asked[0] == ("pause", arguments, user, "a test")
    assert [(each.verb, each.result, each.text) for each in app._runner.records] == [
        ("pause", "done", "the effect"),
        ("seek", "failed", "it is not assigned"),
        ("dead_letter", "error", "dead_letter needs the argument 'offset'"),
        ("resume", "done", ""),
        ("resume", "failed", "t[1] is neither paused nor stuck"),
    ]
    assert {(each.who, each.via, each.node) for each in app._runner.records} == {(user, "socket", "")}
    assert app._runner.records[1].arguments == {**arguments, "offset": 3}
