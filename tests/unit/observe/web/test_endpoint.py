"""The HTTP endpoint: what it shows, and that no client blocks it."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import awoke
from awoke.cli.threads import threads as show_threads
from awoke.observe.ledger import ThreadEntry
from awoke.observe.metrics.recorder import Health
from awoke.observe.web.endpoint import Endpoint
from awoke.observe.web.listener import CLIENT_WITHIN_S


class Fake:
    """An app to be shown."""

    reasons: list[str]

    def __init__(self) -> None:
        self.reasons = []

    def health(self) -> Health:
        return Health(not self.reasons, self.reasons)

    def why_not_ready(self) -> str | None:
        return self.reasons[0] if self.reasons else None

    def status(self) -> dict[str, Any]:
        return {"app": "shown", "is_ready": not self.reasons}

    def threads(self) -> list[ThreadEntry]:
        return [ThreadEntry("t[0]", "flush", "here")]

    def metrics_text(self) -> bytes:
        return b"awoke_healthy 1.0\n"


@pytest.fixture
def shown() -> Fake:
    return Fake()


@pytest.fixture
def endpoint(shown: Fake) -> Iterator[Endpoint]:
    endpoint = Endpoint(0, shown)
    endpoint.start()
    yield endpoint
    endpoint.close()


def get(endpoint: Endpoint, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_it_shows_metrics_threads_and_life(endpoint: Endpoint) -> None:
    assert get(endpoint, "/metrics") == (200, b"awoke_healthy 1.0\n")
    assert json.loads(get(endpoint, "/threads")[1]) == [{"owner": "t[0]", "name": "flush", "started_at": "here"}]
    assert get(endpoint, "/live?verbose=1")[0] == 200
    assert get(endpoint, "/nothing")[0] == 404


def test_health_says_what_is_wrong(endpoint: Endpoint, shown: Fake) -> None:
    assert get(endpoint, "/health") == (200, b'{"is_healthy": true, "reasons": []}')
    shown.reasons.append("t[0] is paused")
    status, body = get(endpoint, "/health")
    assert status == 503
    assert json.loads(body)["reasons"] == ["t[0] is paused"]


def test_it_says_whether_it_is_ready_and_what_it_does(endpoint: Endpoint, shown: Fake) -> None:
    assert get(endpoint, "/ready") == (200, b'{"is_ready": true, "reason": null}')
    shown.reasons.append("it is quiet")
    assert get(endpoint, "/ready") == (503, b'{"is_ready": false, "reason": "it is quiet"}')
    assert json.loads(get(endpoint, "/status")[1]) == {"app": "shown", "is_ready": False}
    paths = json.loads(get(endpoint, "/nothing")[1])["paths"]
    assert [get(endpoint, path)[0] for path in paths] == [200, 503, 503, 200, 200, 200]


def test_a_silent_client_blocks_no_other(endpoint: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port)):
        assert get(endpoint, "/live")[0] == 200


def test_a_client_that_trickles_is_cut_off(endpoint: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port)) as client:
        client.settimeout(CLIENT_WITHIN_S / 10)  # It never leaves the endpoint waiting for long.
        for _ in range(100):
            try:
                client.sendall(b"x")
                if not client.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("the client was served for ever")
    assert get(endpoint, "/live")[0] == 200


def test_a_taken_port_is_named(endpoint: Endpoint, shown: Fake) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(awoke.ConfigError, match=str(port)):
            Endpoint(port, shown)


def test_an_endpoint_that_never_started_can_be_closed(shown: Fake) -> None:
    Endpoint(0, shown).close()


def test_closing_ends_the_thread(shown: Fake) -> None:
    endpoint = Endpoint(0, shown)
    endpoint.start()
    assert "awoke-web" in {thread.name for thread in threading.enumerate()}
    endpoint.close()
    assert "awoke-web" not in {thread.name for thread in threading.enumerate()}


def test_the_command_shows_the_threads(endpoint: Endpoint, capsys: pytest.CaptureFixture[str]) -> None:
    show_threads(str(endpoint.port))
    assert {"t[0]", "flush", "here"} <= set(capsys.readouterr().out.split())
    show_threads(str(endpoint.port), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"owner": "t[0]", "name": "flush", "started_at": "here"}
