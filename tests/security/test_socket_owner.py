"""Command sockets in a folder where every user may make files: neither end talks to another user's process."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.cli.swarm import ask
from awoke.operate.commands import socket_file
from awoke.operate.commands.socket_file import SocketFile, own_folder_in
from awoke.operate.commands.socket_paths import socket_path

TARGET = "shop:app"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This user's folder below a folder of the test's, whose path is short: a socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="owner-", dir="/tmp") as shared:
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setattr(tempfile, "gettempdir", lambda: shared)
        yield own_folder_in(Path(shared))


def test_the_folder_is_made_with_mode_700(folder: Path) -> None:
    SocketFile(socket_path(TARGET)).listening.close()
    assert folder.stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o777, 0o1777, 0o701])
def test_a_folder_with_another_mode_is_refused_by_both_ends(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(awoke.ConfigError, match="must be this user's, with mode 700"):
        SocketFile(socket_path(TARGET))
    with pytest.raises(awoke.ConfigError, match="must be this user's, with mode 700"):
        ask(TARGET, None, "status")


def test_a_link_that_another_user_may_have_made_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(awoke.ConfigError, match="must be this user's"):
        SocketFile(socket_path(TARGET))


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    folder.rename(own_folder_in(folder.parent))
    with pytest.raises(awoke.ConfigError, match="must be this user's"):
        SocketFile(socket_path(TARGET))
    with pytest.raises(awoke.ConfigError, match="must be this user's"):
        ask(TARGET, None, "status")


def test_no_folder_means_that_no_process_runs(folder: Path) -> None:
    with pytest.raises(awoke.ConfigError, match="no swarm of shop:app listens"):
        ask(TARGET, None, "status")


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """A socket whose process answers whatever it is asked."""
    path = str(tmp_path / "s")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()

    def answer() -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(BrokenPipeError):
            connection.recv(65536)
            connection.sendall(b'{"done":"stop"}\n')

    thread = threading.Thread(target=answer)
    thread.start()
    yield path
    thread.join()
    listening.close()


def test_a_client_does_not_ask_another_users_process(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_file, "peer_uid", lambda connection: os.getuid() + 1)
    with pytest.raises(awoke.ConfigError, match="another user's"):
        ask(TARGET, path, "stop")


def test_a_client_asks_a_process_of_its_own_user(path: str) -> None:
    assert ask(TARGET, path, "stop") == {"done": "stop"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root may ask others")
def test_root_asks_the_owner_of_the_folder(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_file, "peer_uid", lambda connection: 1234)
    os.chown(Path(path).parent, 1234, -1)
    assert ask(TARGET, path, "stop") == {"done": "stop"}


def test_an_answer_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b'{"done":')

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(awoke.AwokeError, match="hung up before"):
            ask(TARGET, path, "stop")
        thread.join()
