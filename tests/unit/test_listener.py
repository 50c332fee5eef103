"""The UNIX socket that commands come to: whose it is, and that no client holds it up."""

from __future__ import annotations

import errno
import os
import socket
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke.swarm.socket_file import SocketFile, SocketTaken
from awoke.web import listener
from awoke.web.listener import Listener, Respond
from awoke.web.loop import Loop


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "app.sock")


def client(path: str, data: bytes = b"") -> socket.socket:
    talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    talk.settimeout(20)
    talk.connect(path)
    talk.sendall(data)
    return talk


def test_the_file_and_its_folder_are_this_users(path: str) -> None:
    file = SocketFile(path)
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(Path(path).parent) == ["app.sock"]
    file.remove()
    file.listening.close()
    assert os.listdir(Path(path).parent) == []


def test_a_living_process_keeps_its_socket(path: str) -> None:
    file = SocketFile(path)
    with file.listening:
        with pytest.raises(SocketTaken, match="another swarm listens"):
            SocketFile(path)
        with client(path):
            pass  # It is still there.
    file.remove()


def test_the_socket_of_a_killed_process_is_replaced(path: str) -> None:
    killed = SocketFile(path)
    killed.listening.close()
    successor = SocketFile(path)
    killed.remove()
    assert Path(path).exists(), "the file is the successor's"
    successor.remove()
    assert not Path(path).exists()
    successor.listening.close()


def test_a_socket_that_its_process_removes_meanwhile_is_not_in_the_way(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Path, target: Path) -> None:
        raise FileExistsError("it was there a moment ago")

    monkeypatch.setattr(os, "link", link)
    file = SocketFile(path)
    with client(path):
        pass
    file.remove()
    file.listening.close()


def test_a_forked_child_does_not_keep_the_socket_of_a_killed_process(path: str) -> None:
    killed, runs, hold = SocketFile(path), os.pipe(), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of threads at a fork.
        pid = os.fork()
    if pid == 0:
        os.write(runs[1], b"x")
        os.close(hold[1])
        os.read(hold[0], 1)  # Until the parent has looked.
        os._exit(0)
    assert os.read(runs[0], 1) == b"x"
    killed.listening.close()
    successor = SocketFile(path)
    for each in (*runs, *hold):
        os.close(each)
    assert os.waitpid(pid, 0)[1] == 0
    successor.remove()
    successor.listening.close()


def test_a_file_that_is_no_socket_is_kept(path: str) -> None:
    Path(path).parent.mkdir()
    Path(path).write_text("a letter")
    with pytest.raises(awoke.ConfigError, match="no socket"):
        SocketFile(path)
    assert Path(path).read_text() == "a letter"
    assert os.listdir(Path(path).parent) == ["app.sock"]


def test_a_folder_that_others_write_to_is_refused(path: str) -> None:
    Path(path).parent.mkdir()
    Path(path).parent.chmod(0o777)
    with pytest.raises(awoke.ConfigError, match="other users may write"):
        SocketFile(path)
    Path(path).parent.chmod(0o1777)
    file = SocketFile(path)
    file.remove()
    file.listening.close()


def test_a_folder_of_another_user_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(path).parent.mkdir()
    owner = Path(path).parent.stat().st_uid
    if owner == 0:
        os.chown(Path(path).parent, 65534, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(awoke.ConfigError, match="another user"):
        SocketFile(path)


def test_a_path_that_is_too_long_or_impossible_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(awoke.ConfigError, match="too long"):
        SocketFile(str(tmp_path / ("x" * 120)))
    (tmp_path / "file").write_text("")
    with pytest.raises(awoke.ConfigError, match="can't use the folder"):
        SocketFile(str(tmp_path / "file" / "app.sock"))


class Turned:
    """A listener on a loop that the test turns itself."""

    def __init__(self, path: str, kind: type[socket.socket] = socket.socket) -> None:
        self.loop, self.file = Loop(), SocketFile(path)
        if kind is not socket.socket:
            self.file.listening = kind(fileno=self.file.listening.detach())
        self.listener = Listener(self.loop, self.file.listening, listener.is_whole_line, self._answer)
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
