"""A server that answers as a script says and records its requests, for clients of a schema registry."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.waiting import WITHIN_S, Collected


class Received(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    """With its query, and percent-encoded."""
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes

    @property
    def document(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


class Reply(NamedTuple):
    """An answer."""

    status: int = 200
    document: Any = None
    """Bytes as they are, or else what becomes JSON."""
    headers: Mapping[str, str] = {}


Answering = Callable[[Received], Reply]


class RegistryStub:
    """A server on a free port of the loopback interface, from construction to `close`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests = Collected[Received]()
        """The requests in the order of their arrival."""
        self._answers: dict[tuple[str, str], list[Answering]] = {}
        self._closing = threading.Event()
        self._server = _Server(self._answer)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="registry-stub")
        self._thread.start()

    def answer(self, method: str, path: str, *replies: Reply | Answering) -> None:
        """Sets the answers to a request, one after the other; the last one again and again."""
        self._answers[method, path] = [_answering(each) for each in replies]

    def hang(self, method: str, path: str) -> None:
        """Answers a request when the stub is closed only."""

        def wait(received: Received) -> Reply:
            self._closing.wait(WITHIN_S)
            return Reply(503)

        self.answer(method, path, wait)

    def asked(self) -> list[str]:
        """Returns method and path of all requests until now."""
        return [f"{each.method} {each.path}" for each in self.requests.items]

    def close(self) -> None:
        """Ends all connections and threads."""
        self._closing.set()
        self._server.shutdown()
        self._thread.join(WITHIN_S)
        self._server.end_connections()
        self._server.server_close()

    def _answer(self, received: Received) -> Reply:
        self.requests.add(received)
        answers = self._answers.get((received.method, received.path))
        if not answers:
            return Reply(404, {"error_code": 404, "message": "HTTP 404 Not Found"})
        answering = answers.pop(0) if len(answers) > 1 else answers[0]
        return answering(received)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def unused_port() -> int:
    """Returns a port of the loopback interface on which no program listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answering(reply: Reply | Answering) -> Answering:
    return (lambda received: reply) if isinstance(reply, Reply) else reply


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # So that `server_close` joins them.

    def __init__(self, answer: Answering) -> None:
        self.answer = answer
        self._connections: list[socket.socket] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.append(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        request.close()  # Without the shutdown of the base class: a forked child may have the socket, too.

    def end_connections(self) -> None:
        for each in self._connections:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # It has ended.

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: clients that end a connection, or refuse a certificate, are the subject of tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _answer(self) -> None:
        length = int(self.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.answer(Received(self.command, self.path, headers, self.rfile.read(length)))
        content = reply.document if isinstance(reply.document, bytes) else json.dumps(reply.document).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(content)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  # Names of the base class.

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""
