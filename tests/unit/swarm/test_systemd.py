"""Messages to systemd."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from awoke.swarm import systemd


def test_systemd_is_told_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd.notify("READY=1")  # No socket is set.
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        systemd.notify("READY=1")
        assert listening.recv(100) == b"READY=1"
    systemd.notify("READY=1")  # It has gone.
    assert systemd.watchdog_every_s() is None
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    assert systemd.watchdog_every_s() == 1.5
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert systemd.watchdog_every_s() is None
