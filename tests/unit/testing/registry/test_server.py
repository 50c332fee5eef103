"""The embedded registry over HTTP: connections, access, faults for tests, and a clean end."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

import awoke
from awoke.testing.registry import EmbeddedRegistry
from tests.support.waiting import wait_until

INT = {"schema": '"int"'}


@contextmanager
def connected(registry: EmbeddedRegistry) -> Iterator[http.client.HTTPConnection]:
    """A connection to a registry."""
    address = urlsplit(registry.url)
    with closing(http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)) as connection:
        yield connection


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """Returns the status and the JSON of an answer."""
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_connection_serves_many_requests() -> None:
    with EmbeddedRegistry() as registry, connected(registry) as connection:
        assert registry.url.startswith("http://127.0.0.1:")
        status, found = ask(connection, "POST", "/subjects/a%2Fb/versions", INT)
        assert (status, found["id"]) == (200, 1)
        assert ask(connection, "GET", "/subjects?deleted=true") == (200, ["a/b"])
        assert ask(connection, "DELETE", "/subjects/a%2Fb") == (200, [1])
        assert ask(connection, "PUT", "/config", {"compatibility": "NONE"}) == (200, {"compatibility": "NONE"})
        assert ask(connection, "PATCH", "/subjects")[0] == 405
        assert registry.requests == [
            "POST /subjects/a%2Fb/versions",
            "GET /subjects",
            "DELETE /subjects/a%2Fb",
            "PUT /config",
            "PATCH /subjects",
        ]


def test_a_connection_goes_on_after_a_refusal() -> None:
    with EmbeddedRegistry() as registry, connected(registry) as connection:
        assert ask(connection, "GET", "/subjects/none/versions") == (
            404,
            {"error_code": 40401, "message": "Subject 'none' not found."},
        )
        assert ask(connection, "GET", "/subjects") == (200, [])


def test_the_level_is_an_option() -> None:
    with EmbeddedRegistry("FULL") as registry, connected(registry) as connection:
        assert ask(connection, "GET", "/config") == (200, {"compatibilityLevel": "FULL"})
    with pytest.raises(awoke.ConfigError, match="'WRONG' is no compatibility level; use one of NONE, BACKWARD"):
        EmbeddedRegistry("WRONG")


@pytest.mark.parametrize("name", ["fastavro", "jsonschema"])
def test_a_missing_library_is_told_before_the_registry_starts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(awoke.ConfigError, match=rf"needs {name}: pip install 'awoke\[registry\]'"):
        EmbeddedRegistry()


def test_the_libraries_are_not_imported_with_the_package() -> None:
    code = "import sys, awoke.testing.registry; print([*{'fastavro', 'jsonschema', 'httpx2'} & set(sys.modules)])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_registry_that_is_down_answers_503_until_it_is_up_again() -> None:
    with EmbeddedRegistry() as registry, connected(registry) as connection:
        ask(connection, "POST", "/subjects/order/versions", INT)
        registry.set_up(False)
        assert ask(connection, "GET", "/subjects")[0] == 503
        registry.set_up(True)
        assert ask(connection, "GET", "/subjects") == (200, ["order"])
        assert registry.requests[1:] == ["GET /subjects", "GET /subjects"]


def test_only_the_right_user_and_password_are_let_in() -> None:
    def basic(text: str) -> str:
        return f"Basic {base64.b64encode(text.encode()).decode()}"

    with EmbeddedRegistry(user="ann", password="sécret") as registry, connected(registry) as connection:
        for wrong in ({}, {"Authorization": basic("ann:wrong")}, {"Authorization": "Bearer sécret"}):
            assert ask(connection, "GET", "/subjects", **wrong) == (401, {"error_code": 401, "message": "Unauthorized"})
        assert ask(connection, "GET", "/subjects", Authorization=basic("ann:sécret")) == (200, [])
        assert "sécret" not in repr(registry)


def test_closing_ends_open_connections_threads_and_descriptors() -> None:
    with EmbeddedRegistry():
        pass  # The libraries are imported.
    threads, before = threading.active_count(), descriptors()
    registry = EmbeddedRegistry()
    with connected(registry) as idle, connected(registry) as used:
        idle.connect()
        ask(used, "GET", "/subjects")
        registry.close()
        registry.close()
        assert threading.active_count() <= threads
        assert idle.sock is not None
        assert idle.sock.recv(1) == b""
    assert descriptors() <= before
    with connected(registry) as late, pytest.raises(ConnectionRefusedError):
        ask(late, "GET", "/subjects")


def test_clients_may_ask_at_the_same_time() -> None:
    ids = []

    def register(registry: EmbeddedRegistry) -> None:
        with connected(registry) as connection:
            for _ in range(5):
                ids.append(ask(connection, "POST", "/subjects/order/versions", INT)[1]["id"])

    with EmbeddedRegistry() as registry:
        threads = [threading.Thread(target=register, args=(registry,)) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        with connected(registry) as connection:
            assert ask(connection, "GET", "/subjects/order/versions") == (200, [1])
    assert ids == [1] * 40


def test_a_client_that_goes_away_disturbs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedRegistry() as registry:
        address = urlsplit(registry.url)
        with socket.create_connection((str(address.hostname), address.port or 0)) as gone:
            gone.sendall(b"POST /subjects/order/versions HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")
        wait_until(lambda: registry.requests != [], "the server has seen the end of the request", every_s=0.01)
        with connected(registry) as connection:
            assert ask(connection, "GET", "/subjects") == (200, [])
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_a_length_that_is_no_number_is_refused() -> None:
    with EmbeddedRegistry() as registry, connected(registry) as connection:
        assert ask(connection, "GET", "/subjects", **{"Content-Length": "x"})[0] == 400
