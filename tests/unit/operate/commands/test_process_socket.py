"""`awoke resume`, `skip` and `threads` of a single process."""

from __future__ import annotations

import os
import pwd
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke.cli.swarm import ask
from awoke.cli.threads import threads as show_threads
from awoke.observe.ledger import ThreadEntry
from awoke.operate.commands.actions import Actions
from awoke.operate.commands.process_socket import open_process_socket
from awoke.operate.commands.views import Audit

COMMAND = b'{"command": "resume", "topic": "t", "partition": 1}\n'
RESUMED = {"done": "resume", "text": "t[1] goes on"}


class FakeApp:
    """An app with one paused partition, t[1], whose message at offset 42 fails."""

    def __init__(self) -> None:
        self.paused, self.failing = {("t", 1)}, [42]
        self.records = list[Audit]()
        steered: Any = self
        self.actions: Actions | None = Actions("shop", "host.1", steered, self.records.append)

    def steer(self, group: str | None, change: Any) -> bool:
        return bool(change(self))

    def resume(self, topic: str, partition: int) -> bool:
        was_paused = (topic, partition) in self.paused
        self.paused.discard((topic, partition))
        return was_paused

    def pause(self, topic: str, partition: int, why: str) -> bool:
        return True

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        raise awoke.FencedError("taken away", topic, partition)

    def skip(self, topic: str, partition: int, offset: int) -> bool:
        return offset in self.failing

    def blocking(self, topic: str, partition: int, group: str | None) -> list[int]:
        return self.failing

    def is_assigned(self, topic: str, partition: int) -> bool:
        return (topic, partition) in {("t", 1), ("t", 2)}

    def threads(self) -> list[ThreadEntry]:
        return [ThreadEntry("t[1]", "flush", "here")]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "app.sock")


@pytest.fixture
def app(path: str) -> Iterator[FakeApp]:
    app = FakeApp()
    with open_process_socket(app, path, "shop:app"):
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
    assert answer(path, COMMAND) == RESUMED
    assert answer(path, COMMAND) == {"failed": "t[1] is neither paused nor stuck"}


def test_a_message_that_fails_is_skipped(path: str, app: FakeApp) -> None:
    command = b'{"command": "skip", "topic": "t", "partition": 1, "offset": %s}\n'
    assert answer(path, command % b"42") == {"done": "skip", "text": "t[1] offset 42 is skipped"}
    assert answer(path, command % b"41") == {"failed": "t[1] offset 41 does not fail; failing now: 42"}
    for wrong in (b"-1", b"true", b'"42"', b"{}"):
        assert "offset must be an integer" in answer(path, command % wrong)["error"]


def test_the_threads_of_a_single_process_are_told(path: str, app: FakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    show_threads("shop:app", socket=path, as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out) == {"owner": "t[1]", "name": "flush", "started_at": "here"}
    with pytest.raises(awoke.ConfigError, match="neither MODULE:APP nor a port"):
        show_threads("70000")


def test_the_command_line_asks_a_single_process(path: str, app: FakeApp) -> None:
    assert ask("shop:app", path, "resume", topic="t", partition=1) == RESUMED
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
        (b"{}\n", "there is no command"),
        (b'{"command": ["resume"]}\n', "there is no command"),
        (b'{"command": "scale", "nodes": 3}\n', "single process"),
        (b'{"command": "resume"}\n', "needs the argument 'topic'"),
        (b'{"command": "resume", "topic": "t", "partition": -1}\n', "partition must be"),
        (b'{"command": "resume", "topic": "t", "partition": 1, "more": 1}\n', "no argument 'more'"),
    ],
)
def test_a_wrong_command_is_an_error_and_the_next_one_is_executed(
    path: str, app: FakeApp, data: bytes, said: str
) -> None:
    assert said in answer(path, data)["error"]
    assert answer(path, COMMAND) == RESUMED


def test_a_partition_that_is_taken_away_meanwhile_is_no_error(path: str, app: FakeApp) -> None:
    command = b'{"command": "seek", "topic": "t", "partition": 1, "offset": 3}\n'
    assert "taken away" in answer(path, command)["failed"]


def test_an_app_that_does_not_run_yet_executes_nothing(path: str, app: FakeApp) -> None:
    app.actions = None
    assert answer(path, COMMAND) == {"failed": "the app does not run"}


def test_an_app_runs_without_a_socket_that_is_taken(path: str, app: FakeApp, caplog: pytest.LogCaptureFixture) -> None:
    with open_process_socket(FakeApp(), path, "shop:app"):
        assert "no commands (awoke resume, skip, threads) for this process" in caplog.text
    assert answer(path, COMMAND) == RESUMED


def test_the_thread_and_the_file_are_gone_at_the_end(path: str) -> None:
    with open_process_socket(FakeApp(), path, "shop:app"), client(path, b"half a requ"):
        assert "awoke-commands" in {thread.name for thread in threading.enumerate()}
    assert "awoke-commands" not in {thread.name for thread in threading.enumerate()}
    assert not Path(path).exists()


def test_a_partition_that_another_process_has_is_named_as_such(app: FakeApp, path: str) -> None:
    for verb, more in (("resume", {}), ("skip", {"offset": 1})):
        with pytest.raises(awoke.AwokeError, match=r"t\[9\] is not assigned to this process: ask the process"):
            ask("shop:app", path, verb, topic="t", partition=9, **more)


def test_each_command_is_recorded_once_with_the_user_of_the_client(path: str, app: FakeApp) -> None:
    user = pwd.getpwuid(os.getuid()).pw_name
    place = b'"topic": "t", "partition": 1'
    assert "done" in answer(path, b'{"command": "pause", "reason": "a test", %s}\n' % place)
    assert "needs the argument" in answer(path, b'{"command": "dead_letter", %s}\n' % place)["error"]
    assert answer(path, COMMAND)["done"] == "resume"
    assert answer(path, COMMAND)["failed"]
    assert answer(path, b'{"command": "stacks", "reason": "it hangs"}\n')["stacks"]
    assert answer(path, b'{"command": "threads"}\n')["done"] == "threads"
    assert [(each.verb, each.result, each.reason) for each in app.records] == [
        ("pause", "done", "a test"),
        ("dead_letter", "invalid_argument", ""),
        ("resume", "done", ""),
        ("resume", "failed_precondition", ""),
        ("stacks", "done", "it hangs"),
    ]
    assert app.records[3].text == "t[1] is neither paused nor stuck"
    assert {(each.who, each.via, each.node, each.app) for each in app.records} == {(user, "socket", "host.1", "shop")}
    assert app.records[0].arguments == {"topic": "t", "partition": 1}
