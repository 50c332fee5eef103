"""Listening sockets for commands, and for health and metrics over HTTP. They never block the loop that they run in.

A listener reads a request until it is complete, answers it, and closes the connection. It also closes a connection that
takes too long. If there are too many, it closes the one that has waited longest for its client: idle clients delay no
others. Everything runs on the thread of one loop: a supervisor's, an app's command socket's or its HTTP endpoint's.
"""

from __future__ import annotations

import itertools
import logging
import os
import resource
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from awoke.observe.web.deadlines import Deadline
from awoke.observe.web.loop import Client, Loop

logger = logging.getLogger(__name__)

ROOT = 0
REQUEST_MAX = 64 * 1024
CONNECTIONS_MAX = 64
"""The most connections of one listener."""
QUEUE_MAX = 1_024
"""Connections that the system keeps until they are accepted."""
CLIENT_WITHIN_S = 2.0
"""The longest time for a client to send its request, and again to receive the answer."""
DESCRIPTORS_RESERVED = 32
"""Clients leave this many file descriptors to the process, or half of a smaller limit."""
GRACE_S = 0.05
"""The age at which a connection may be closed for another one. Clients in the system's queue send meanwhile."""
ACCEPT_AGAIN_S = 1.0
"""The delay until the next accept, if the process has no descriptor left and no client to close."""
WARN_EVERY_S = 60.0

Respond = Callable[[bytes], object]
"""Sends the answer and closes the connection."""
Answer = Callable[[bytes, Respond], object]
"""Gets a complete request."""
IsWhole = Callable[[bytearray], bool]


class Timer(Enum):
    """The deadlines of a listener (by its number), and of its connections (by their descriptors)."""

    ACCEPT = auto()
    """Connections are accepted again."""
    CLIENT = auto()
    """The client must have done its part."""


class Peer(NamedTuple):
    """The process at the other end of a UNIX socket, as the system says."""

    pid: int
    uid: int


class SocketListener:
    """A listening socket, and the connections that have not been answered."""

    _numbers = itertools.count(1)

    def __init__(self, loop: Loop, listening: socket.socket, is_whole: IsWhole, answer: Answer) -> None:
        self._loop, self._listening = loop, listening
        self._is_whole, self._answer = is_whole, answer
        self._connections: dict[socket.socket, bytearray] = {}
        """The data that each client has sent; the oldest connection first."""
        self.peer: Peer | None = None
        """The client of the request that is executed now; None for one over a network."""
        self._accepting = Deadline(Timer.ACCEPT, next(self._numbers))
        self._is_accepting = False
        self._warned_s = -WARN_EVERY_S
        listening.setblocking(False)
        self._accept_again()

    def close(self) -> None:
        """Closes everything."""
        self._stop_accepting()
        for connection in list(self._connections):
            self._drop(connection)
        self._stop_accepting()  # `_drop` may have begun it again.
        self._loop.deadlines.cancel(self._accepting)
        self._listening.close()

    # Accepting.

    def _accept_again(self) -> None:
        if not self._is_accepting:
            self._is_accepting = True
            self._loop.watch(self._listening, self._on_connections)

    def _accept_later(self, in_s: float) -> None:
        self._stop_accepting()
        self._loop.deadlines.set(self._accepting, in_s, self._accept_again)

    def _stop_accepting(self) -> None:
        self._is_accepting = False
        self._loop.forget(self._listening)

    def _on_connections(self) -> None:
        """Accepts connections while there is room, and makes room for one of them."""
        if self._is_crowded() and not self._make_room():
            return
        for _ in range(CONNECTIONS_MAX):
            if not self._accept() or self._is_crowded():
                return

    def _accept(self) -> bool:
        """Accepts a connection; returns false when there is none, or no descriptor for it."""
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:
            return False
        except ConnectionError:
            return True  # The client has gone already.
        except OSError as error:
            self._on_shortage(error)
            return False
        self._take(connection)
        return True

    def _take(self, connection: socket.socket) -> None:
        if not self._may_ask(connection):
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection] = bytearray()
        self._loop.watch(connection, lambda: self._on_request(connection))
        self._expect(connection)
        self._on_request(connection)  # A client that waited in the queue may have sent its request already.

    # Room.

    def _is_full(self) -> bool:
        return len(self._connections) >= CONNECTIONS_MAX

    def _is_crowded(self) -> bool:
        """Returns whether there are too many connections, or clients use descriptors that are reserved for the process.

        The system gives out the lowest free descriptor.
        """
        most = descriptors_for_clients()
        return self._is_full() or any(each.fileno() >= most for each in self._loop.clients)

    def _make_room(self) -> bool:
        """Closes the connection that has waited longest for its client; returns false if none may be closed now."""
        is_full = self._is_full()
        waiting = [each for each in self._loop.clients if not is_full or each in self._connections]
        if not waiting:
            self._stop_accepting()  # All wait for this process. The first one that ends begins it again.
            return False
        left_s = self._loop.clients[waiting[0]].since_s + GRACE_S - time.monotonic()
        if left_s > 0.0:
            self._accept_later(left_s)
            return False
        self._warn(f"there are more than {CONNECTIONS_MAX} connections" if is_full else "few file descriptors are left")
        self._loop.clients[waiting[0]].close()
        return True

    def _on_shortage(self, error: OSError) -> None:
        """Makes room if descriptors or memory are used up.

        Otherwise the connection stays in the system's queue, and ends each wait of the loop at once.
        """
        self._warn(f"can't accept a connection: {error.strerror}")
        if not self._loop.close_oldest_client():
            self._accept_later(ACCEPT_AGAIN_S)

    def _warn(self, why: str) -> None:
        """Logs why connections are closed, at most once a minute: a client must not fill the log."""
        now_s = time.monotonic()
        if now_s - self._warned_s >= WARN_EVERY_S:
            self._warned_s = now_s
            logger.warning("%s: idle connections are closed, the oldest first (ulimit -n: %d)", why, limit())

    def _may_ask(self, connection: socket.socket) -> bool:
        """Returns whether a client may ask. On a UNIX socket only this process's user and root may."""
        return connection.family != socket.AF_UNIX or peer_uid(connection) in (ROOT, os.getuid())

    # Requests and answers.

    def _expect(self, connection: socket.socket) -> None:
        """Sets the deadline at which the connection is closed, unless the client has sent or received in time."""
        self._loop.clients[connection] = Client(lambda: self._drop(connection))
        self._loop.deadlines.set(self._deadline_of(connection), CLIENT_WITHIN_S, lambda: self._drop(connection))

    def _expect_no_more(self, connection: socket.socket) -> None:
        self._loop.clients.pop(connection, None)
        self._loop.deadlines.cancel(self._deadline_of(connection))
        self._loop.forget(connection)

    def _deadline_of(self, connection: socket.socket) -> Deadline:
        return Deadline(Timer.CLIENT, connection.fileno())

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
        elif self._is_whole(request):
            self._expect_no_more(connection)  # This process has the next move.
            self._execute(connection, bytes(request))

    def _execute(self, connection: socket.socket, request: bytes) -> None:
        self.peer = peer_of(connection) if connection.family == socket.AF_UNIX else None
        try:
            self._answer(request, lambda answer: self._respond(connection, answer))
        except Exception:
            # A request must not end a supervisor, and its nodes with it.
            logger.exception("a request is not answered, which is a bug of awoke")
            self._drop(connection)

    def _respond(self, connection: socket.socket, answer: bytes) -> None:
        """Sends the whole answer, in as many pieces as the client takes."""
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

        # At once, if it fits: the loop may end after this turn.
        if not send():
            self._loop.selector.register(connection, selectors.EVENT_WRITE, send)
            self._expect(connection)

    def _drop(self, connection: socket.socket) -> None:
        if self._connections.pop(connection, None) is None:
            return
        self._expect_no_more(connection)
        connection.close()
        self._loop.deadlines.cancel(self._accepting)
        self._accept_again()


def peer_of(connection: socket.socket) -> Peer:
    """Returns the process at the other end of a UNIX socket, or the process that listens."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return Peer(int(pid), int(uid))


def peer_uid(connection: socket.socket) -> int:
    """Returns the user id of the process at the other end of a UNIX socket, or of the process that listens."""
    return peer_of(connection).uid


def descriptors_for_clients() -> int:
    """Returns the lowest file descriptor that is reserved for the process."""
    return max(limit() - DESCRIPTORS_RESERVED, limit() // 2)


def limit() -> int:
    """Returns the limit of this process's file descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def is_whole_line(request: bytearray) -> bool:
    """Returns whether a command is complete."""
    return request.endswith(b"\n")
