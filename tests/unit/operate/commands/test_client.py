"""The client of a command socket, as a node uses it; the tests of `awoke.cli.swarm` have the rest."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from awoke.errors import AwokeError, ConfigError
from awoke.operate.commands.client import SupervisorSocket


def asked(path: Path, answer: bytes, ask: Callable[[], object]) -> bytes:
    """Has a socket at the path answer one command; returns the command."""
    found = list[bytes]()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            talk, _ = listening.accept()
            with talk:
                found.append(talk.recv(1_000))
                talk.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            ask()
        finally:
            thread.join()
            path.unlink()
    return found[0]


def test_a_command_is_sent_with_its_fields_and_answered(tmp_path: Path) -> None:
    path = tmp_path / "s"
    supervisor = SupervisorSocket(str(path))
    effects = list[str]()
    answer = b'{"done": "scale", "text": "it goes to 3 nodes"}\n'
    sent = asked(path, answer, lambda: effects.append(supervisor.ask("scale", nodes=3)))
    assert effects == ["it goes to 3 nodes"]
    assert sent == b'{"command":"scale","nodes":3}\n'


def test_a_refusal_and_a_failure_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "s"
    supervisor = SupervisorSocket(str(path))
    with pytest.raises(ConfigError, match="a reload is under way"):
        asked(path, b'{"error": "a reload is under way"}\n', lambda: supervisor.ask("reload"))
    with pytest.raises(AwokeError, match="reload failed: no good"):
        asked(path, b'{"failed": "no good"}\n', lambda: supervisor.ask("reload"))
    with pytest.raises(AwokeError, match="no process listens at"):
        supervisor.ask("reload")
