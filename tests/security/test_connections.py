"""Clients that send nothing, too slowly or too much, over HTTP and to a command socket: others are served."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import awoke
from awoke.cli.threads import threads as show_threads
from awoke.observe.web import http
from awoke.observe.web.endpoint import Endpoint
from awoke.observe.web.listener import CONNECTIONS_MAX, descriptors_for_clients
from awoke.observe.web.loop import Loop
from awoke.operate.commands.actions import Actions
from awoke.operate.commands.process_socket import open_process_socket
from awoke.swarm.options import SwarmOptions
from awoke.swarm.supervisor import Supervisor
from tests.unit.observe.web.test_endpoint import Fake, get

FEW = 40
"""File descriptors beyond those that are open: fewer than there are clients."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint(0, Fake(), allowed_hosts="shop.internal, Shop")
    endpoint.start()
    yield endpoint
    endpoint.close()


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Leaves the process few descriptors."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + FEW, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def idle(port: int, count: int) -> contextlib.ExitStack:
    """Opens connections that say nothing."""
    clients = contextlib.ExitStack()
    for _ in range(count):
        clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
    return clients


def raw(port: int, request: bytes) -> bytes:
    """Sends a request; returns all that comes until the other end closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as talk:
        talk.sendall(request)
        answer = b""
        while piece := talk.recv(65536):
            answer += piece
        return answer


def test_idle_clients_delay_no_other(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    # Their deadline is not what ends them, so that it is not what lets the others in.
    monkeypatch.setattr("awoke.observe.web.listener.CLIENT_WITHIN_S", 3_600.0)
    with idle(endpoint.port, 10 * CONNECTIONS_MAX):
        for _ in range(10):
            assert get(endpoint, "/health")[0] == 200


def test_a_client_that_takes_no_answer_delays_no_other(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.observe.web.listener.CLIENT_WITHIN_S", 3_600.0)
    monkeypatch.setattr(Fake, "metrics_text", lambda self: bytes(8 << 20))
    with idle(endpoint.port, 1) as clients:
        greedy = clients.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
        greedy.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert get(endpoint, "/live")[0] == 200


def test_a_request_that_does_not_end_is_cut_off(endpoint: Endpoint) -> None:
    with contextlib.suppress(ConnectionError):
        assert raw(endpoint.port, b"GET /live HTTP/1.1\r\nX: " + bytes(100_000)) == b""
    assert get(endpoint, "/live")[0] == 200


def test_what_is_shown_can_fail_and_the_next_request_is_answered(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Fake, "health", lambda self: 1 / 0)
        assert raw(endpoint.port, b"GET /health HTTP/1.1\r\n\r\n") == b""
    assert get(endpoint, "/health")[0] == 200


def test_a_process_short_of_descriptors_closes_idle_clients_and_recovers(
    few_descriptors: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The supervisor's listeners share a loop: clients of one must not take the other's descriptors, nor the nodes'."""
    options = SwarmOptions(target="a:b", nodes=2, socket=str(tmp_path / "s"), metrics_port=0)
    supervisor = Supervisor(options)
    supervisor.socket.open()
    supervisor.endpoint.open()
    assert supervisor.endpoint._listener is not None
    port = supervisor.endpoint._listener._listening.getsockname()[1]
    with contextlib.ExitStack() as clients:
        for _ in range(FEW // 4):
            clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            supervisor.loop.turn()
        free = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - len(os.listdir("/proc/self/fd"))
        assert free > 0
        talk = clients.enter_context(socket.socket(socket.AF_UNIX))
        talk.connect(options.socket)
        talk.sendall(b'{"command":"status"}\n')
        talk.setblocking(False)
        assert msgspec.json.decode(turned(supervisor.loop, talk))["nodes"] == []
    supervisor.socket.close()
    supervisor.endpoint.close()
    supervisor.close()
    assert [each for each in caplog.records if "few file descriptors are left" in each.message]


def turned(loop: Loop, talk: socket.socket) -> bytes:
    """Turns a loop until it has answered."""
    for _ in range(100):
        loop.turn()
        with contextlib.suppress(BlockingIOError):
            return talk.recv(65536)
    raise AssertionError("no answer came")


def test_clients_leave_descriptors_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, left in ((1_024, 992), (64, 32), (20, 10)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert descriptors_for_clients() == left
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, 0))
    assert descriptors_for_clients() > 1 << 30


def test_a_lone_client_is_served_where_few_descriptors_are_left(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("awoke.observe.web.listener.descriptors_for_clients", lambda: 0)
    for _ in range(3):
        assert get(endpoint, "/live")[0] == 200


def test_idle_clients_of_a_command_socket_delay_no_command(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "s")
    with open_process_socket(Commanded(), path, "shop:app"), contextlib.ExitStack() as clients:
        for _ in range(3 * CONNECTIONS_MAX):
            talk = clients.enter_context(socket.socket(socket.AF_UNIX))
            talk.connect(path)
        talk.sendall(b'{"command":"threads"}\n')
        assert msgspec.json.decode(talk.recv(65536)) == {"done": "threads", "text": "0 threads"}
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warnings) == 1, "one line, however many clients"


class Commanded:
    """An app without threads."""

    @property
    def actions(self) -> Actions:
        steered: Any = self
        return Actions("shop", "host.1", steered, lambda audit: None)

    def threads(self) -> list[Any]:
        return []


# The host.


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:9404", 200),
        ("10.1.2.3:9404", 200),
        ("[::1]:9404", 200),
        ("[fe80::1]", 200),
        ("localhost:9404", 200),
        ("LOCALHOST.", 200),
        ("shop.internal:80", 200),
        ("shop", 200),
        ("attacker.example", 403),
        ("attacker.example:9404", 403),
        ("127.0.0.1.attacker.example", 403),
        ("localhost.attacker.example", 403),
        ("shop.internal.attacker.example", 403),
        ("[attacker.example]", 403),
        ("127.0.0.1@attacker.example", 403),
        ("attacker.example, localhost", 403),
        ("localhost:port", 403),
        ("", 403),
    ],
)
def test_only_hosts_that_can_not_be_rebound_are_answered(endpoint: Endpoint, host: str, status: int) -> None:
    answer = raw(endpoint.port, f"GET /live HTTP/1.1\r\nX-A: b\r\nhOst:  {host}\r\n\r\n".encode())
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"metrics_allowed_hosts" in answer) == (status == 403)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /live HTTP/1.0\r\n\r\n", 200),
        (b"HEAD /live HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"POST /live HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET /live HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n", 400),
        (b"GET /live\r\n\r\n", 400),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET http://attacker.example/live HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    ],
)
def test_other_requests_are_answered_or_refused(endpoint: Endpoint, request_: bytes, status: int) -> None:
    answer = raw(endpoint.port, request_)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.endswith(b"\r\n\r\n") == request_.startswith(b"HEAD"), "a HEAD has no body"


def test_the_command_says_that_a_name_is_not_allowed(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", endpoint.port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(awoke.AwokeError, match="metrics_allowed_hosts"):
        show_threads(str(endpoint.port), host="other.internal")
    show_threads(str(endpoint.port), host="shop.internal")


def test_the_bound_name_is_allowed() -> None:
    assert http.names_in("", "shop.internal") == {"shop.internal", "localhost"}
    assert http.names_in(" A.b. ,,c", "127.0.0.1") == {"a.b", "c", "127.0.0.1", "localhost"}
