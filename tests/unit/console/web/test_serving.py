"""A server, also beside an app: it answers, ends in order, and says which port is taken."""

from __future__ import annotations

import socket
import urllib.request
from typing import Any

import pytest

import awoke
from awoke.console.web import serving
from awoke.console.web.application import application
from awoke.console.web.grants import Rights, view_only
from awoke.console.web.serving import Server
from awoke.errors import ConfigError
from awoke.observe.web.http import listening_socket
from awoke.settings import load
from awoke.testing import EmbeddedCluster, running
from tests.unit.console.web.fakes import FakeLive, report


def test_a_server_answers_until_it_is_closed() -> None:
    live: Any = FakeLive([report()])
    server = Server(application("shop", load({}).values, live, Rights(view_only, (), False), ()), "127.0.0.1", 0)
    server.start()
    try:
        with urllib.request.urlopen(f"{server.url}/", timeout=60) as answer:
            assert (answer.status, answer.headers.get("server")) == (200, None)
    finally:
        server.close()


def test_a_port_that_is_taken_is_named() -> None:
    any_app: Any = FakeLive([])
    with listening_socket("127.0.0.1", 0, "port") as taken, pytest.raises(ConfigError, match="another port"):
        Server(any_app, "127.0.0.1", taken.getsockname()[1])


def test_the_console_is_there_while_the_app_runs(caplog: pytest.LogCaptureFixture) -> None:
    app = awoke.App("shop")
    app.on("orders")(lambda message: None)
    serving.show_beside(app, port=0)
    with EmbeddedCluster() as cluster, caplog.at_level("INFO", serving.logger.name):
        cluster.create_topic("orders")
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            url = caplog.messages[-1].rpartition(" ")[2]
            with urllib.request.urlopen(f"{url}/checks?format=json", timeout=60) as answer:
                assert answer.status == 200
    assert app.settings.console


def served(live: Any = None) -> Server:
    rights = Rights(view_only, (), False)
    shown: Any = live or FakeLive([report()])
    return Server(application("shop", load({}).values, shown, rights, ()), "127.0.0.1", 0)


def test_clients_that_send_nothing_shut_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CONNECTIONS_MAX", 5)
    server = served()
    server.start()
    port = int(server.url.rpartition(":")[2])
    idle = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(20)]
    try:
        for each in idle[::2]:
            each.send(b"GET / HTTP/1.1\r\nHost: 127")
        with urllib.request.urlopen(f"{server.url}/", timeout=60) as answer:
            assert answer.status == 200
        assert sum(is_closed(each) for each in idle[:15]) == 15, "the first ones made room"
    finally:
        for each in idle:
            each.close()
        server.close()


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_a_request_that_drips_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUEST_WITHIN_S", 0.1)
    server = served()
    server.start()
    try:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.send(b"GET / HTTP/1.1\r\nX: ")
            assert is_closed(client)
    finally:
        server.close()
