"""`awoke console`: another address needs a login, and nothing can be changed unless it is allowed."""

from __future__ import annotations

from typing import Any, Protocol

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import awoke
from awoke.cli.console import found_app, is_loopback
from awoke.cli.main import command_line
from awoke.console.web import serving
from awoke.errors import ConfigError
from tests.support.clusters import MockCluster
from tests.unit.console.web.fakes import assert_read_only


class FakeServer:
    """Notes what would be served."""

    made: list[tuple[Any, str, int]] = []
    url = "http://127.0.0.1:1"

    def __init__(self, app: Any, host: str, port: int) -> None:
        self.made.append((app, host, port))

    def run(self) -> None: ...


class Run(Protocol):
    def __call__(self, *options: str) -> Any: ...


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, mock_cluster: MockCluster) -> Run:
    """Runs the command. It has brokers, which it asks at once: its end waits for an answer."""
    FakeServer.made.clear()
    monkeypatch.setattr(serving, "Server", FakeServer)
    brokers = ("--bootstrap-servers", mock_cluster.bootstrap_servers)
    return lambda *options: CliRunner().invoke(command_line(["console"]), ["console", "shop", *brokers, *options])


def test_the_console_listens_on_loopback_alone(run: Run) -> None:
    done = run()
    assert (done.exit_code, "the console of shop is at http://127.0.0.1:1" in done.output) == (0, True)
    assert [(host, port) for _, host, port in FakeServer.made] == [("127.0.0.1", 8686)]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "console.example"])
def test_another_address_needs_a_login(run: Run, host: str) -> None:
    refused = run("--host", host).exception
    assert isinstance(refused, ConfigError)
    assert "--auth basic:FILE" in str(refused)
    assert FakeServer.made == []
    assert run("--host", host, "--auth", "none").exit_code == 0


def test_an_app_is_imported_and_gets_the_brokers_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awoke.app.application.find_app", {"shop:app": awoke.App("shop")}.__getitem__)
    app = found_app("shop:app", {"bootstrap_servers": "a:1", "kafka": {"client.id": "b"}})
    assert (app.settings.bootstrap_servers, app.settings.kafka["client.id"]) == ("a:1", "b")


@pytest.mark.parametrize(
    ("host", "is_local"), [("127.0.0.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("x", False)]
)
def test_loopback_is_told_from_other_addresses(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


def test_it_allows_no_action_and_shows_no_payload_by_default(run: Run) -> None:
    assert run().exit_code == 0
    ((web, _, _),) = FakeServer.made
    with TestClient(web, base_url="http://localhost", follow_redirects=False) as client:
        assert_read_only(client)
