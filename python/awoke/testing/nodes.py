"""Kills a node of a swarm that a test runs in a process of its own."""

from __future__ import annotations

import os
import select
import signal
import socket as sockets
from typing import Any

import msgspec

from awoke.errors import ConfigError, OperationTimeout

ANSWER_WITHIN_S = 10.0


def kill_node(socket: str, node: int, timeout_s: float) -> int:
    """Kills a node by SIGKILL and returns the number of its process. Blocks until the process has ended.

    Raises:
        ConfigError: No swarm listens at the socket, or it has no such node; OperationTimeout: it has not ended in time.
    """
    found = next((each for each in _status(socket)["nodes"] if each["node"] == node and each["pid"]), None)
    if found is None:
        raise ConfigError(f"the swarm at {socket} has no process of a node {node}", "node")
    pid = int(found["pid"])
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        if not select.select([descriptor], [], [], timeout_s)[0]:
            raise OperationTimeout(f"node {node} has not ended within {timeout_s:g} s", f"kill node {node}", timeout_s)
    finally:
        os.close(descriptor)
    return pid


def _status(socket: str) -> dict[str, Any]:
    answer = b""
    try:
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as talk:
            talk.settimeout(ANSWER_WITHIN_S)
            talk.connect(socket)
            talk.sendall(b'{"command":"status"}\n')
            while not answer.endswith(b"\n") and (piece := talk.recv(65536)):
                answer += piece
        return msgspec.json.decode(answer, type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"no swarm answers at {socket}: {error}", "socket") from None
