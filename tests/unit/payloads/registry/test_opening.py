"""The registry that the settings name."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path
from typing import Any

import pytest

import awoke
from awoke.payloads.registry.schemas import open_registry, schemas_of
from awoke.settings import Settings, load

URL = "http://127.0.0.1:1"


def test_without_an_address_it_is_an_error_that_says_what_to_set() -> None:
    with pytest.raises(awoke.ConfigError, match="registry_url='http://…'"):
        open_registry(Settings())


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"registry_user": "u", "registry_password": "secret"},
        {"registry_token": "secret"},
        {"registry_token": lambda: "secret"},
        {"registry_headers": {"target-sr-cluster": "secret"}},
        {"registry_oauth_url": "http://127.0.0.1:1/token", "registry_user": "u", "registry_password": "secret"},
    ],
)
def test_the_client_has_what_the_settings_say_and_shows_no_secret(more: dict[str, Any]) -> None:
    with open_registry(Settings(registry_url=URL, **more)) as registry:
        assert registry.url == URL
        assert "secret" not in repr(registry)


async def given() -> str:
    return "fresh"


@pytest.mark.parametrize(
    ("token", "authorization"), [("fixed", "Bearer fixed"), (lambda: "made", "Bearer made"), (given, "Bearer fresh")]
)
def test_each_request_has_the_headers_and_the_token_of_the_settings(token: Any, authorization: str) -> None:
    """As Confluent Cloud wants them: the cluster and the pool of identities beside the token."""
    headers = {"target-sr-cluster": "lsrc-1", "Confluent-Identity-Pool-Id": "pool-1"}
    asked = list[dict[str, str]]()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        settings = Settings(registry_url=url, registry_token=token, registry_headers=headers)
        with open_registry(settings) as registry:
            assert registry.subjects() == []
        thread.join(20)
    assert asked[0]["authorization"] == authorization
    assert (asked[0]["target-sr-cluster"], asked[0]["confluent-identity-pool-id"]) == ("lsrc-1", "pool-1")


def test_headers_may_be_one_text_and_are_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWOKE_REGISTRY_HEADERS", "target-sr-cluster=lsrc-1, x-key=c2VjcmV0==")
    loaded = load({}, tmp_path)
    assert loaded.values.headers_of_registry() == {"target-sr-cluster": "lsrc-1", "x-key": "c2VjcmV0=="}
    (shown,) = (each.value for each in loaded.explain() if each.name == "registry_headers")
    assert "c2VjcmV0" not in shown + repr(loaded.values)


@pytest.mark.parametrize("more", [{"registry_headers": "no value"}, {"registry_token": 7}])
def test_a_login_of_another_kind_is_one_error(more: dict[str, Any], tmp_path: Path) -> None:
    (name,) = more
    with pytest.raises(awoke.ConfigError, match=f"^setting '{name}'"):
        load(more, tmp_path)


def test_a_file_that_does_not_exist_is_one_clear_error(tmp_path: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"none\.pem"):
        open_registry(Settings(registry_url="https://127.0.0.1:1", registry_ca=str(tmp_path / "none.pem")))


def test_schemas_open_it_on_first_use() -> None:
    schemas = schemas_of(Settings(registry_url=URL, registry_register="always"))
    assert schemas.registry.url == URL
    schemas.close()
