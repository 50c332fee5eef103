"""Sockets that others ask a supervisor on: the admin socket, and HTTP for health and metrics. They block nobody.

A request is read until it is whole, answered, and its connection closed. Everything runs in the supervisor's loop.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path

from awoke.errors import ConfigError

REQUEST_MAX = 64 * 1024

Respond = Callable[[bytes], object]
"""Sends the answer and closes the connection."""
Answer = Callable[[bytes, Respond], object]
"""Gets a whole request."""
IsWhole = Callable[[bytes], bool]


class Listener:
    """A listening socket, and the connections that have not been answered."""

    def __init__(
        self, selector: selectors.BaseSelector, listening: socket.socket, is_whole: IsWhole, answer: Answer
    ) -> None:
        self._selector, self._listening = selector, listening
        self._is_whole, self._answer = is_whole, answer
        self._connections: dict[socket.socket, bytearray] = {}
        listening.setblocking(False)
        selector.register(listening, selectors.EVENT_READ, self._on_connection)

    def close(self) -> None:
        """Close everything."""
        for connection in list(self._connections):
            self._drop(connection)
        self._selector.unregister(self._listening)
        self._listening.close()

    def _on_connection(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        if not self._may_ask(connection):
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection] = bytearray()
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._on_request(connection))

    def _may_ask(self, connection: socket.socket) -> bool:
        """On a socket of the file system: only whoever runs the swarm, and root."""
        if connection.family != socket.AF_UNIX:
            return True
        _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return uid in (0, os.getuid())

    def _on_request(self, connection: socket.socket) -> None:
        request = self._connections[connection]
        try:
            piece = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        request += piece
        if not piece or len(request) > REQUEST_MAX:
            self._drop(connection)
        elif self._is_whole(bytes(request)):
            self._selector.unregister(connection)
            self._answer(bytes(request), lambda answer: self._respond(connection, answer))

    def _respond(self, connection: socket.socket, answer: bytes) -> None:
        """Send it all, in as many pieces as the receiver wants."""
        if connection not in self._connections:
            return
        rest = memoryview(answer)

        def send() -> bool:
            nonlocal rest
            try:
                while rest:
                    rest = rest[connection.send(rest) :]
            except BlockingIOError:
                return False
            except OSError:
                pass
            self._drop(connection)
            return True

        # At once, if it fits: the loop may turn no more.
        if not send():
            self._selector.register(connection, selectors.EVENT_WRITE, send)

    def _drop(self, connection: socket.socket) -> None:
        self._connections.pop(connection, None)
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        connection.close()


def admin_socket(path: str) -> socket.socket:
    """Listen there, for this user only.

    Raises:
        ConfigError: another swarm listens there, or something else is there.
    """
    file = Path(path)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file.exists():
        if not stat.S_ISSOCK(file.stat().st_mode):
            raise ConfigError(f"{path} is there and no socket: say --socket PATH", "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            try:
                other.connect(path)
            except OSError:
                file.unlink()  # Nobody listens: left by one that was killed.
            else:
                raise ConfigError(f"another swarm listens at {path}: stop it, or say --socket PATH", "socket")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    earlier = os.umask(0o177)
    try:
        listening.bind(path)
    except OSError as error:
        listening.close()
        raise ConfigError(f"can't listen at {path}: {error.strerror or error}", "socket") from None
    finally:
        os.umask(earlier)
    listening.listen(16)
    return listening


def http_socket(host: str, port: int) -> socket.socket:
    """Listen for HTTP.

    Raises:
        ConfigError: the port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"can't listen on {host}:{port}: {error.strerror}", "metrics_port") from None
    listening.listen(16)
    return listening


def is_whole_line(request: bytes) -> bool:
    """Whether a request of the admin socket is all there."""
    return request.endswith(b"\n")


def is_whole_http(request: bytes) -> bool:
    """Whether the head of a request is all there; nobody is asked for a body."""
    return b"\r\n\r\n" in request


def http(status: str, text: str | bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    """An answer over HTTP."""
    body = text.encode() if isinstance(text, str) else text
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def path_of(request: bytes) -> str:
    """What a GET asks for; empty for anything else."""
    words = request.split(b"\r\n", 1)[0].split(b" ")
    return words[1].decode(errors="replace") if len(words) == 3 and words[0] in (b"GET", b"HEAD") else ""
