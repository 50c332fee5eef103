"""A server, also beside an app: it answers, ends in order, and says which port is taken."""

from __future__ import annotations

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
