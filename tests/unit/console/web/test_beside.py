"""The console beside an app: it is there while the app runs, and the app reports."""

from __future__ import annotations

import urllib.request

import pytest

import awoke
from awoke.console.web import beside
from awoke.testing import EmbeddedCluster, running


def test_the_console_is_there_while_the_app_runs(caplog: pytest.LogCaptureFixture) -> None:
    app = awoke.App("shop")
    app.on("orders")(lambda message: None)
    beside.show_beside(app, port=0)
    with EmbeddedCluster() as cluster, caplog.at_level("INFO", beside.logger.name):
        cluster.create_topic("orders")
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            url = caplog.messages[-1].rpartition(" ")[2]
            with urllib.request.urlopen(f"{url}/checks?format=json", timeout=60) as answer:
                assert answer.status == 200
    assert app.settings.console
