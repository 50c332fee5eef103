"""A node of a swarm is killed by the number that its supervisor tells."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import awoke
from awoke.testing.nodes import kill_node


class Supervisor:
    """Answers one `status`, as a supervisor does."""

    def __init__(self, path: Path, answer: bytes) -> None:
        self.path, self._answer = str(path), answer
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self.path)
        self._listening.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._listening.accept()
        with client:
            self.asked = json.loads(client.makefile("rb").readline())
            client.sendall(self._answer)

    def close(self) -> None:
        self._thread.join()
        self._listening.close()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    waits = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_the_process_of_the_node_has_ended(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    nodes = [{"node": 1, "pid": None}, {"node": 2, "pid": process.pid}]
    supervisor = Supervisor(tmp_path / "socket", json.dumps({"nodes": nodes}).encode() + b"\n")
    assert kill_node(supervisor.path, 2, 30) == process.pid
    supervisor.close()
    assert supervisor.asked == {"command": "status"}
    assert process.wait(30) == -9


def test_a_node_without_a_process_is_refused(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "socket", b'{"nodes": [{"node": 1, "pid": null}]}\n')
    with pytest.raises(awoke.ConfigError, match="has no process of a node 1"):
        kill_node(supervisor.path, 1, 30)
    supervisor.close()


def test_a_swarm_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(awoke.ConfigError, match="no swarm answers at"):
        kill_node(str(tmp_path / "none"), 1, 30)


def test_an_answer_that_is_no_status_is_refused(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "socket", b"no\n")
    with pytest.raises(awoke.ConfigError, match="no swarm answers at"):
        kill_node(supervisor.path, 1, 30)
    supervisor.close()
