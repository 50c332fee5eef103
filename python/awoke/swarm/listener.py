"""Listening sockets for commands, and for health and metrics over HTTP. They never block the loop that they run in.

A request is read until it is whole, answered, and its connection closed. A connection that takes too long is closed, too.
Everything runs on the thread of one loop: a supervisor's, or that of an app's command socket.
"""

from __future__ import annotations

import itertools
import os
import selectors
import socket
import struct
from collections.abc import Callable

from awoke.errors import ConfigError
from awoke.swarm.loop import Loop

ROOT = 0
REQUEST_MAX = 64 * 1024
CONNECTIONS_MAX = 32
"""More connections wait in the system's queue until one of these has ended."""
CLIENT_WITHIN_S = 5.0
"""How long a client may take to send its request, and how long to receive the answer."""
ACCEPT_AGAIN_S = 1.0
"""When the process has no descriptor left, the next connection is accepted after this."""

Respond = Callable[[bytes], object]
"""Sends the answer and closes the connection."""
Answer = Callable[[bytes, Respond], object]
"""Gets a whole request."""
IsWhole = Callable[[bytes], bool]


class Listener:
    """A listening socket, and the connections that have not been answered."""

    _numbers = itertools.count(1)

    def __init__(self, loop: Loop, listening: socket.socket, is_whole: IsWhole, answer: Answer) -> None:
        self._loop, self._listening = loop, listening
        self._is_whole, self._answer = is_whole, answer
        self._connections: dict[socket.socket, bytearray] = {}
        self._name = f"listener-{next(self._numbers)}:"
        self._is_accepting = False
        listening.setblocking(False)
        self._accept_again()

    def close(self) -> None:
        """Closes everything."""
        self._stop_accepting()
        for connection in list(self._connections):
            self._drop(connection)
        self._stop_accepting()  # A connection that ended may have begun it again.
        self._loop.deadlines.cancel_all(self._name)
        self._listening.close()

    def _accept_again(self) -> None:
        if not self._is_accepting:
            self._is_accepting = True
            self._loop.watch(self._listening, self._on_connection)

    def _stop_accepting(self) -> None:
        self._is_accepting = False
        self._loop.forget(self._listening)

    def _on_connection(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            # Out of descriptors or memory. The connection stays there, and would end each wait of the loop at once.
            self._stop_accepting()
            self._loop.deadlines.set(f"{self._name}accept", ACCEPT_AGAIN_S, self._accept_again)
            return
        if not self._may_ask(connection):
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection] = bytearray()
        self._loop.watch(connection, lambda: self._on_request(connection))
        self._expect(connection)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._stop_accepting()

    def _may_ask(self, connection: socket.socket) -> bool:
        """On a UNIX socket: only this process's user, and root."""
        if connection.family != socket.AF_UNIX:
            return True
        _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return uid in (ROOT, os.getuid())

    def _expect(self, connection: socket.socket) -> None:
        """Closes the connection unless the client has done its part in time."""
        self._loop.deadlines.set(self._deadline_of(connection), CLIENT_WITHIN_S, lambda: self._drop(connection))

    def _deadline_of(self, connection: socket.socket) -> str:
        return f"{self._name}{connection.fileno()}"

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
            self._loop.forget(connection)
            self._loop.deadlines.cancel(self._deadline_of(connection))  # The next move is this process's.
            self._answer(bytes(request), lambda answer: self._respond(connection, answer))

    def _respond(self, connection: socket.socket, answer: bytes) -> None:
        """Sends it all, in as many pieces as the receiver wants."""
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
            self._loop.selector.register(connection, selectors.EVENT_WRITE, send)
            self._expect(connection)

    def _drop(self, connection: socket.socket) -> None:
        if self._connections.pop(connection, None) is None:
            return
        self._loop.forget(connection)
        self._loop.deadlines.cancel(self._deadline_of(connection))
        connection.close()
        if f"{self._name}accept" not in self._loop.deadlines:
            self._accept_again()


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
    """Whether a command is all there."""
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
