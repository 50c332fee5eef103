"""Which socket a command asks: that of the app it names, in its folder; and which others there are."""

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
from awoke.operate.commands.process_socket import open_process_socket
from awoke.operate.commands.socket_file import PATH_BYTES_MAX, SocketFile
from awoke.operate.commands.socket_paths import find_socket, note_at, others_text, running_apps, socket_path
from awoke.operate.commands.views import CommandResult, OperatorCommand

TARGET = "shop:app"


class Executed:
    """An app that executes every command, and remembers it."""

    def __init__(self) -> None:
        self.verbs: list[str] = []
        self.actions = self

    def execute(self, command: OperatorCommand) -> CommandResult:
        self.verbs.append(command.verb)
        return CommandResult(verb=command.verb)


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The runtime folder of this user, with a short path; the working directory is another folder."""
    monkeypatch.delenv("AWOKE_SOCKET", raising=False)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        monkeypatch.chdir(tmp_path / "a")
        yield Path(folder)


def test_two_folders_with_the_same_target_have_two_sockets(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = socket_path(TARGET)
    assert first == socket_path(TARGET)
    monkeypatch.chdir(tmp_path / "b")
    assert first != socket_path(TARGET)
    assert Path(first).parent == runtime
    assert Path(first).name.startswith("awoke-shop-app-")


def test_a_stop_in_one_folder_does_not_reach_the_app_of_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Executed()
    with open_process_socket(app, None, TARGET):
        monkeypatch.chdir(tmp_path / "b")
        with pytest.raises(awoke.ConfigError, match=f"no swarm of shop:app listens .*shop:app runs in {tmp_path}/a"):
            ask(TARGET, None, "stop")
        monkeypatch.chdir(tmp_path / "a")
        ask(TARGET, None, "stop")
    assert app.verbs == ["stop"]


def test_a_command_for_another_app_than_the_one_that_listens_is_refused(tmp_path: Path) -> None:
    app = Executed()
    with open_process_socket(app, str(tmp_path / "s"), TARGET):
        with pytest.raises(awoke.ConfigError, match="shop:app listens here, and not 'bank:app'"):
            ask("bank:app", str(tmp_path / "s"), "stop")
        ask(TARGET, str(tmp_path / "s"), "stop")
    assert app.verbs == ["stop"]


@pytest.mark.parametrize("place", ["environment", "file"])
def test_every_command_obeys_the_socket_that_run_obeys(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "s")
    if place == "environment":
        monkeypatch.setenv("AWOKE_SOCKET", path)
    else:
        Path("awoke.toml").write_text(f'socket = "{path}"\n')
    app = Executed()
    with open_process_socket(app, path, TARGET):
        ask(TARGET, None, "quiet")
    assert app.verbs == ["quiet"]


@pytest.mark.parametrize(("verb", "within_s"), [("reload", 600.0), ("stop", 10.0)])
def test_a_client_waits_as_long_as_its_command_may_take(
    verb: str, within_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[float | None]()
    settimeout = socket.socket.settimeout

    def noted(talk: socket.socket, timeout_s: float | None) -> None:
        waited.append(timeout_s)
        settimeout(talk, timeout_s)

    with open_process_socket(Executed(), str(tmp_path / "s"), TARGET):
        monkeypatch.setattr(socket.socket, "settimeout", noted)
        ask(TARGET, str(tmp_path / "s"), verb)
        monkeypatch.undo()
    assert within_s in waited


def test_an_app_of_a_service_manager_is_found_from_a_shell_with_another_runtime_folder(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(runtime))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    with open_process_socket(Executed(), None, TARGET):
        started = socket_path(TARGET)
        assert Path(started).parent == runtime / f"awoke-{os.getuid()}"
        (runtime / "login").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / "login"))
        assert socket_path(TARGET) != started
        assert find_socket(TARGET) == started


@pytest.mark.parametrize("kind", ["missing", "open to others", "of another user"])
def test_a_runtime_folder_that_is_not_this_users_is_not_used(
    kind: str, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(runtime))
    folder = runtime / "login"
    if kind != "missing":
        folder.mkdir(mode=0o700)
    if kind == "open to others":
        folder.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    if kind == "of another user":
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert Path(socket_path(TARGET)).parent == runtime / f"awoke-{os.getuid()}"


def test_a_folder_with_a_long_path_is_passed_over(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = runtime / ("x" * PATH_BYTES_MAX)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert len(socket_path(TARGET)) <= PATH_BYTES_MAX


def test_without_any_folder_for_temporary_files_the_error_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gettempdir() -> str:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", gettempdir)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    with pytest.raises(awoke.ConfigError, match="set XDG_RUNTIME_DIR, or pass --socket"):
        socket_path(TARGET)


def test_a_name_lasts_from_one_start_to_the_next_and_is_another_one_elsewhere(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = socket_path(TARGET)
    name = note_at(path, TARGET).name
    assert note_at(path, TARGET).name == name
    Path(f"{path}.app").unlink()  # Another machine, whose host has the same name.
    assert note_at(path, TARGET).name != name
    monkeypatch.chdir(tmp_path / "b")
    assert note_at(path, TARGET).folder == str(tmp_path / "b")


def test_only_apps_that_run_are_named(runtime: Path) -> None:
    path = socket_path(TARGET)
    note_at(path, TARGET)
    assert not [each for each in running_apps() if each[1] == path]
    with contextlib.closing(SocketFile(path).listening):
        assert [(note.target, at) for note, at in running_apps() if at == path] == [(TARGET, path)]
        assert f"--socket {path}" in others_text(TARGET)


def test_a_pipe_in_the_place_of_a_note_does_not_hold_a_command_up(runtime: Path) -> None:
    path = socket_path(TARGET)
    os.mkfifo(f"{path}.app")
    with contextlib.closing(SocketFile(path).listening):
        found = threading.Thread(target=running_apps, daemon=True)
        found.start()
        found.join(20)
        assert not found.is_alive()
