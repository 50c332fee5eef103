"""The process of a mold, over its socket: it imports the app, refuses one that can't be forked, and forks nodes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from awoke.swarm import mold as module
from awoke.swarm import protocol
from awoke.swarm.options import SwarmOptions
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_FAILED

WITHIN_S = 30.0
APP = "import awoke\napp = awoke.App('shop')\n"


class Mold:
    """A mold of this source, as its supervisor has it."""

    def __init__(self, folder: Path, source: str, supervisor: int, preload: bool | None) -> None:
        (folder / "molded.py").write_text(source)
        self.control, theirs = protocol.pair()
        self.control.settimeout(WITHIN_S)
        self.control.send(protocol.encode(SwarmOptions(target="molded:app", nodes=1, socket="s", preload=preload)))
        command = [sys.executable, "-m", "awoke.swarm.mold", str(theirs.fileno()), str(supervisor)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()])
        theirs.close()

    def says(self) -> tuple[msgspec.Struct | None, list[int]]:
        """Returns its next message with the descriptors, or None at its end."""
        received = protocol.receive(self.control)
        assert received is not None
        return (protocol.decode(received.data, protocol.FROM_MOLD) if received.data else None), received.descriptors

    def fork(self, node: int, *descriptors: int) -> None:
        socket.send_fds(self.control, [protocol.encode(protocol.Fork(node))], descriptors)

    def close(self) -> None:
        self.control.close()
        self.process.wait(WITHIN_S)


@contextlib.contextmanager
def mold_of(folder: Path, source: str, supervisor: int | None = None, preload: bool | None = None) -> Iterator[Mold]:
    mold = Mold(folder, source, supervisor or os.getpid(), preload)
    with contextlib.closing(mold):
        yield mold


def end_of(node: socket.socket) -> list[object]:
    """Returns what a node says until its end."""
    said: list[object] = []
    node.settimeout(WITHIN_S)
    while (received := protocol.receive(node)) and received.data:
        protocol.close_all(received.descriptors)
        said.append(protocol.decode_node(received.data))
    return said


def test_nodes_are_forked_from_the_app_that_was_imported_once(tmp_path: Path) -> None:
    """This app has no route: a node of it says so, and ends."""
    noted = tmp_path / "imported"
    note = f"open({str(noted)!r}, 'a').write"
    hooks = (f"@app.before_fork\ndef {name}() -> None:\n    {note}('{name} ')\n" for name in ("first", "second"))
    source = f"{APP}{note}('imported ')\n{''.join(hooks)}"
    with mold_of(tmp_path, source) as mold:
        ready, _ = mold.says()
        assert isinstance(ready, protocol.MoldReady)
        assert ready.resident_bytes > 1_000_000
        for number in (3, 4):
            ours, theirs = protocol.pair()
            mold.fork(number, theirs.fileno())
            theirs.close()
            forked, (pidfd,) = mold.says()
            assert isinstance(forked, protocol.Forked)
            assert forked.node == number
            *_, failed = end_of(ours)
            assert isinstance(failed, protocol.StartFailed)
            assert "'shop' has no route" in failed.text
            assert select.select([pidfd], [], [], WITHIN_S)[0], "the descriptor is that of the node"
            ours.close()
            os.close(pidfd)
    assert mold.process.returncode == 0, "it ends with the socket"
    assert noted.read_text() == "imported first second ", "before the first fork, and never again"


def test_an_app_that_names_partitions_is_for_one_node(tmp_path: Path) -> None:
    source = f"{APP}@app.on('orders', partitions=[0, 3])\ndef handle(message: awoke.Message[bytes]) -> None: ...\n"
    with mold_of(tmp_path, source) as mold:
        ready, _ = mold.says()
        assert isinstance(ready, protocol.MoldReady)
        assert ready.single.startswith("route 'orders': each node would read partitions=[0, 3]")


def test_an_app_with_one_name_for_all_nodes_is_for_one_node(tmp_path: Path) -> None:
    source = f"{APP}app.use(kafka={{'group.instance.id': 'one'}})\n"
    with mold_of(tmp_path, source) as mold:
        ready, _ = mold.says()
        assert isinstance(ready, protocol.MoldReady)
        assert ready.single.endswith("set instance_id")


def test_what_processes_share_is_made_before_the_first_fork(tmp_path: Path) -> None:
    noted = tmp_path / "made"
    source = f"""{APP}from typing import Annotated
def table() -> str:
    open({str(noted)!r}, 'a').write('made ')
    return 'table'
@app.on('orders')
def handle(message: awoke.Message[bytes], it: Annotated[str, awoke.Depends(table, 'app')]) -> None: ...
"""
    with mold_of(tmp_path, source) as mold:
        ready, _ = mold.says()
        assert isinstance(ready, protocol.MoldReady)
        assert noted.read_text() == "made "


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("other = 1", "app"),
    ],
    ids=["exits", "no app"],
)
def test_an_app_that_can_not_be_forked_is_refused_with_its_reason(tmp_path: Path, source: str, reason: str) -> None:
    with mold_of(tmp_path, source) as mold:
        refused, _ = mold.says()
        assert isinstance(refused, protocol.Refused)
        assert reason in refused.text
        assert mold.says() == (None, [])
    assert mold.process.returncode == EXIT_CONFIGURATION


EARLY = """import threading
@app.before_fork
def early() -> None:
    threading.Thread(target=threading.Event().wait, name='hooked', daemon=True).start()
"""


@pytest.mark.parametrize(
    ("preload", "threads", "imports"),
    [(None, True, 3), (False, True, 3), (False, False, 3), (True, True, 1), (None, False, 1)],
)
def test_an_app_with_threads_is_imported_by_each_node(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], preload: bool | None, threads: bool, imports: int
) -> None:
    noted = tmp_path / "imported"
    source = f"{APP}open({str(noted)!r}, 'a').write('imported ')\n{EARLY if threads else ''}"
    with mold_of(tmp_path, source, preload=preload) as mold:
        assert isinstance(mold.says()[0], protocol.MoldReady)
        for number in (1, 2):
            ours, theirs = protocol.pair()
            mold.fork(number, theirs.fileno())
            theirs.close()
            forked, descriptors = mold.says()
            protocol.close_all(descriptors)
            assert isinstance(forked, protocol.Forked)
            *_, failed = end_of(ours)
            assert isinstance(failed, protocol.StartFailed)
            assert "'shop' has no route" in failed.text
            ours.close()
    assert noted.read_text().count("imported") == imports
    warning = "hooked (" if threads and preload is not False else ""
    assert warning in (written := capfd.readouterr().err)
    assert ("can't share" in written) == bool(warning)


def test_a_request_whose_descriptor_is_missing_is_answered(tmp_path: Path) -> None:
    with mold_of(tmp_path, APP) as mold:
        mold.says()
        mold.fork(3)
        assert mold.says() == (protocol.NotForked(3, "its mold may open no more files"), [])


def test_a_mold_whose_supervisor_has_gone_imports_nothing(tmp_path: Path) -> None:
    noted = tmp_path / "imported"
    with mold_of(tmp_path, f"open({str(noted)!r}, 'w')", supervisor=1) as mold:
        assert mold.says() == (None, [])
    assert mold.process.returncode == EXIT_FAILED
    assert not noted.exists()


def test_a_node_that_can_not_be_reported_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    ours, theirs = protocol.pair()
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    with ours, theirs:
        assert module._tell(theirs, 3, child.pid) == EXIT_FAILED
        assert child.wait(WITHIN_S) == -signal.SIGKILL
        told = protocol.decode(ours.recv(protocol.MESSAGE_MAX), protocol.FROM_MOLD)
    assert told == protocol.NotForked(3, "its mold can't tell of it: Too many open files")
