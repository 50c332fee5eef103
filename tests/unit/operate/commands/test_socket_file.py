"""The UNIX socket that commands come to: whose it is, and what lies in its place."""

from __future__ import annotations

import os
import socket
import warnings
from pathlib import Path

import pytest

import awoke
from awoke.operate.commands.socket_file import SocketFile, SocketTaken


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
