"""The functions of Linux that a swarm needs, and messages to systemd."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from awoke.swarm import linux


def test_what_linux_says_of_a_process() -> None:
    linux.check_system()
    assert linux.tasks()
    own_bytes = linux.proportional_bytes(os.getpid())
    assert own_bytes is not None
    assert linux.resident_bytes(os.getpid()) > own_bytes // 2 > 0
    assert (linux.resident_bytes(1 << 22), linux.proportional_bytes(1 << 22)) == (0, None)


def test_systemd_is_told_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linux.notify_systemd("READY=1")  # No socket is set.
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        linux.notify_systemd("READY=1")
        assert listening.recv(100) == b"READY=1"
    linux.notify_systemd("READY=1")  # It has gone.
    assert linux.watchdog_every_s() is None
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    assert linux.watchdog_every_s() == 1.5
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert linux.watchdog_every_s() is None
