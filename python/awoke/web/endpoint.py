"""Metrics, health and threads of a running app over HTTP, for Prometheus, an orchestrator and `awoke threads`.

The thread:
1. wait for a connection or for the bell;
2. answer one request (a client has a second to say what it wants, however it spreads its bytes);
3. end when the bell rang.
"""

from __future__ import annotations

import http.server
import io
import json
import logging
import selectors
import socket
import socketserver
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from awoke._native import Bell
from awoke.errors import ConfigError
from awoke.metrics.health import Health

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

logger = logging.getLogger(__name__)

CLIENT_TIMEOUT_S = 1.0


class Thread(Protocol):
    """A thread and its owner."""

    @property
    def owner(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def started_at(self) -> str: ...


class Shown(Protocol):
    """What there is to show."""

    def health(self) -> Health: ...
    def why_not_ready(self) -> str | None: ...
    def status(self) -> dict[str, Any]: ...
    def threads(self) -> Sequence[Thread]: ...
    def metrics_text(self) -> bytes: ...


class Endpoint:
    """Serves `/live`, `/ready`, `/health` (200, or 503 with the reasons), `/metrics`, `/threads` and `/status`.

    Raises:
        ConfigError: the port is taken, or not ours to take.
    """

    def __init__(self, port: int, shown: Shown, host: str = "127.0.0.1") -> None:
        handler = type("Handler", (_Handler,), {"shown": shown})
        try:
            self._server = _Server((host, port), handler)
        except OSError as error:
            text = f"metrics can't be served on {host}:{port}: {error.strerror}; choose another metrics_port"
            raise ConfigError(text, "metrics_port") from None
        self.port: int = self._server.server_address[1]
        """The port, also where a free one was asked for."""
        self._bell = Bell()
        self._thread = threading.Thread(target=self._serve, name="awoke-web", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End and join the thread."""
        self._bell.ring()
        if self._thread.ident is not None:
            self._thread.join()
        self._server.server_close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server.fileno(), selectors.EVENT_READ)
            selector.register(self._bell.fileno(), selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._bell.fileno() in ready:
                    return
                self._server.handle_request()


class _Server(socketserver.TCPServer):
    allow_reuse_address = True
    timeout = 0
    """`handle_request` is called when there is something to accept; where that has gone meanwhile, it must not wait."""

    def handle_error(self, request: object, client_address: object) -> None:
        logger.debug("a client of the endpoint went away", exc_info=True)


class _Reader(io.RawIOBase):
    """What a client sends before its deadline."""

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Wait for the next bytes; how many came.

        Raises:
            TimeoutError: the deadline has passed.
        """
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0.0:
            raise TimeoutError("the client took too long")
        self._connection.settimeout(left_s)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(CLIENT_TIMEOUT_S)  # For the answer.


class _Handler(http.server.BaseHTTPRequestHandler):
    shown: ClassVar[Shown]
    timeout = CLIENT_TIMEOUT_S

    def setup(self) -> None:
        """Give the client one deadline: a time for each read would let one that trickles hold the app's stop for ever."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Reader(self.connection, time.monotonic() + CLIENT_TIMEOUT_S))

    def do_GET(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0]
        match path:
            case "/metrics":
                self._answer(200, self.shown.metrics_text(), "text/plain; version=0.0.4; charset=utf-8")
            case "/health":
                health = self.shown.health()
                self._answer_json(200 if health.is_healthy else 503, health._asdict())
            case "/live":
                self._answer_json(200, {"is_alive": True})
            case "/ready":
                why = self.shown.why_not_ready()
                self._answer_json(200 if why is None else 503, {"is_ready": why is None, "reason": why})
            case "/status":
                self._answer_json(200, self.shown.status())
            case "/threads":
                threads = self.shown.threads()
                self._answer_json(
                    200, [{"owner": each.owner, "name": each.name, "started_at": each.started_at} for each in threads]
                )
            case _:
                self._answer_json(404, {"paths": ["/live", "/ready", "/health", "/metrics", "/threads", "/status"]})

    def _answer_json(self, status: int, document: Any) -> None:
        self._answer(status, json.dumps(document).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log a request."""
        logger.debug(format, *arguments)
