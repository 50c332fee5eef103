"""Listening sockets: no client holds up another one."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awoke.observe.web import listener
from awoke.observe.web.listener import Respond, SocketListener
from awoke.observe.web.loop import Loop
from awoke.operate.commands.socket_file import SocketFile


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "app.sock")


def client(path: str, data: bytes = b"") -> socket.socket:
    talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    talk.settimeout(20)
    talk.connect(path)
    talk.sendall(data)
    return talk


class Turned:
    """A listener on a loop that the test turns itself."""

    def __init__(self, path: str, kind: type[socket.socket] = socket.socket) -> None:
        self.loop, self.file = Loop(), SocketFile(path)
        if kind is not socket.socket:
            self.file.listening = kind(fileno=self.file.listening.detach())
        self.listener = SocketListener(self.loop, self.file.listening, listener.is_whole_line, self._answer)
        self.answered = 0

    def _answer(self, request: bytes, respond: Respond) -> None:
        self.answered += 1
        respond(b"yes")

    def turn_until(self, is_so: Callable[[], bool]) -> None:
        for _ in range(50):
            if is_so():
                return
            self.loop.turn()
        raise AssertionError("still not so")

    def close(self) -> None:
        self.file.remove()
        self.listener.close()
        self.loop.close()


def test_a_client_that_sends_no_request_is_disconnected(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "CLIENT_WITHIN_S", 0.05)
    turned = Turned(path)
    with client(path, b"half a requ") as talk:
        turned.turn_until(lambda: bool(turned.listener._connections))
        turned.turn_until(lambda: not turned.listener._connections)
        assert talk.recv(1) == b""
    turned.close()


def test_a_client_that_takes_no_answer_is_disconnected(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "CLIENT_WITHIN_S", 0.05)
    turned = Turned(path)
    turned.listener._answer = lambda _, respond: respond(bytes(8 << 20))
    with client(path, b"\n"):
        turned.turn_until(lambda: bool(turned.listener._connections))
        turned.turn_until(lambda: not turned.listener._connections)
    turned.close()


def test_the_oldest_idle_client_makes_room_for_another(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 2)
    turned = Turned(path)
    idle = [client(path), client(path)]
    turned.turn_until(lambda: len(turned.listener._connections) == 2)
    with client(path, b"\n") as third:
        turned.turn_until(lambda: turned.answered == 1)
        assert third.recv(10) == b"yes"
    assert idle[0].recv(1) == b"", "it has waited longest"
    with idle.pop() as young:
        young.sendall(b"\n")
        turned.turn_until(lambda: turned.answered == 2)
        assert young.recv(10) == b"yes"
    idle.pop().close()
    turned.close()


def test_clients_that_are_being_answered_are_not_closed_for_another(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 2)
    turned, later = Turned(path), list[Respond]()
    turned.listener._answer = lambda _, respond: later.append(respond)
    with client(path, b"\n") as first, client(path, b"\n"), client(path, b"\n"):
        turned.turn_until(lambda: not turned.listener._is_accepting)
        assert len(later) == 2
        later[0](b"yes")
        assert first.recv(10) == b"yes"
        turned.turn_until(lambda: len(later) == 3)
    turned.close()


def test_a_request_that_can_not_be_answered_ends_its_connection_only(path: str) -> None:
    turned = Turned(path)
    answer = turned.listener._answer
    turned.listener._answer = lambda *_: 1 / 0
    with client(path, b"\n") as talk:
        turned.turn_until(lambda: bool(turned.loop.wakes))
        assert talk.recv(1) == b""
    turned.listener._answer = answer
    with client(path, b"\n") as talk:
        turned.turn_until(lambda: turned.answered == 1)
        assert talk.recv(10) == b"yes"
    turned.close()


class Full(socket.socket):
    """Accepts nothing, as in a process without a free descriptor, until it is told to."""

    is_full = True

    def accept(self) -> tuple[socket.socket, Any]:
        if self.is_full:
            raise OSError(errno.EMFILE, "full")
        return super().accept()


def test_a_process_without_descriptors_accepts_later(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "ACCEPT_AGAIN_S", 0.01)
    monkeypatch.setattr(Full, "is_full", True)
    turned = Turned(path, Full)
    with client(path, b"\n") as talk:
        turned.turn_until(lambda: not turned.listener._is_accepting)
        monkeypatch.setattr(Full, "is_full", False)
        turned.turn_until(lambda: turned.answered == 1)
        assert talk.recv(10) == b"yes"
    turned.close()


def test_another_users_client_is_disconnected(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turned, uid = Turned(path), os.getuid()
    with client(path) as talk:
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        monkeypatch.setattr(listener, "ROOT", uid + 1)
        turned.loop.turn()
        assert talk.recv(10) == b""
    turned.close()
