"""The embedded schema registry: an HTTP server on a loopback port, with one thread for each connection.

The accepting thread:
1. waits for a connection, and starts a thread that answers the requests of that connection;
2. ends when `close` has connected.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import logging
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any

from awoke.errors import ConfigError
from awoke.payloads.registry.compatibility import LEVELS
from awoke.testing.registry import refusal
from awoke.testing.registry.libraries import library
from awoke.testing.registry.refusal import Refusal
from awoke.testing.registry.routes import Answer, RegistryRequest, Routes, refused
from awoke.testing.registry.subjects import Subjects

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
WAKE_WITHIN_S = 5.0


class EmbeddedRegistry:
    """A schema registry inside this process, on a free loopback port: Confluent's REST API, memory only.

    It keeps Avro, JSON and Protobuf schemas and checks compatibility. Each change of a Protobuf schema counts as
    compatible. With a user and a password, it answers 401 to requests without them (basic authentication). A context
    manager: leaving it stops the registry. It runs from the constructor on, which does not block. Any thread may use
    it.

    Raises:
        ConfigError: There is no such compatibility level, or the libraries of `awoke[registry]` are not installed.
    """

    def __init__(self, compatibility: str = "BACKWARD", user: str | None = None, password: str | None = None) -> None:
        if compatibility not in LEVELS:
            text = f"compatibility={compatibility!r} is no compatibility level; use one of {', '.join(LEVELS)}"
            raise ConfigError(text, "compatibility")
        for name in ("fastavro", "jsonschema"):
            library(name)  # Here, and not at the first request: the error belongs to the test.
        self.requests: list[str] = []
        """The requests until now, as `GET /subjects`: method and path, without the query. A test may clear it."""
        self._access = None if user is None else basic_authorization(user, password or "")
        self._is_up = True
        self._lock = threading.Lock()
        """Guards the state behind the routes."""
        self._routes = Routes(Subjects(compatibility))
        self._server: RegistryServer | None = RegistryServer(self)
        self.url = f"http://127.0.0.1:{self._server.port}"
        """Where the registry listens."""

    def set_up(self, is_up: bool) -> None:
        """Makes the registry answer every request with 503, or answer as before. Its content stays. Does not block."""
        self._is_up = is_up

    def answer(self, request: RegistryRequest, authorization: str | None = None) -> Answer:
        """Returns the answer to a request; for the server's threads, and for tests without a network."""
        self.requests.append(f"{request.method} {request.path.partition('?')[0]}")
        if not self._is_up:
            return refused(Refusal(503, 503, "the registry is down: set_up(False)"))
        if self._access is not None and not hmac.compare_digest(self._access, (authorization or "").encode()):
            return refused(refusal.unauthorized())
        with self._lock:
            return self._routes.answer(request)

    def close(self) -> None:
        """Stops the registry, and joins its threads. Blocks until the requests under way are answered.

        Closing again does nothing.
        """
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> EmbeddedRegistry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RegistryServer(ThreadingHTTPServer):
    """The listening socket, the connections and their threads."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, registry: EmbeddedRegistry) -> None:
        self.registry = registry
        self._is_closing = False
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        """The open connections. Guarded by the lock."""
        self._handlers: list[threading.Thread] = []
        """The threads of connections. For the accepting thread, and after its end for `close`."""
        super().__init__(("127.0.0.1", 0), RegistryHandler)
        self.port: int = self.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="awoke-registry", daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        """Binds the socket. `HTTPServer` would ask the name service for a name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.socket.getsockname()[1]

    def close(self) -> None:
        """Ends and joins all threads, and closes all sockets. Blocks until the requests under way are answered."""
        self._is_closing = True
        # The accepting thread waits without a limit: a connection wakes it.
        socket.create_connection(("127.0.0.1", self.port), WAKE_WITHIN_S).close()
        self._thread.join()
        self.server_close()
        with self._lock:
            connections = list(self._connections)
        for each in connections:
            with contextlib.suppress(OSError):  # Its own thread may have closed it meanwhile.
                each.shutdown(socket.SHUT_RDWR)
        for handler in self._handlers:
            handler.join()

    def _accept(self) -> None:
        """Accepts connections until the server is closing."""
        while not self._is_closing:
            self.handle_request()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Tells whether to serve a connection: not the one that wakes the thread."""
        return not self._is_closing

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread for a connection."""
        with self._lock:
            self._connections.add(request)
        target = self.process_request_thread
        handler = threading.Thread(
            target=target, args=(request, client_address), name="awoke-registry-client", daemon=True
        )
        self._handlers = [*(each for each in self._handlers if each.is_alive()), handler]
        handler.start()

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection."""
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs the error of a connection's thread; a client that has gone is no error."""
        if isinstance(sys.exception(), ConnectionError):
            logger.debug("a client has closed its connection")
        else:
            logger.exception("a request is not answered, which is a bug of awoke")


class RegistryHandler(BaseHTTPRequestHandler):
    """Reads the requests of one connection, and writes the answers."""

    server: RegistryServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Head and body of an answer are two writes: the second must not wait for the client."""

    def answer(self) -> None:
        """Answers one request."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal():
            self.close_connection = True
            self._send(refused(refusal.bad_request("Content-Length is no number")))
            return
        request = RegistryRequest(self.command, self.path, self.rfile.read(int(length)))
        self._send(self.server.registry.answer(request, self.headers.get("Authorization")))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815 - http.server finds them by these names.

    def _send(self, answer: Answer) -> None:
        """Writes an answer."""
        body = answer.text.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        if answer.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="SchemaRegistry"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs a request, on the level `debug`."""
        logger.debug(format, *arguments)


def basic_authorization(user: str, password: str) -> bytes:
    """Returns the header `Authorization` of a user and a password."""
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())
