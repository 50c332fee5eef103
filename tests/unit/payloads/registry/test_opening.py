"""The registry that the settings name."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.payloads.registry.schemas import open_registry, schemas_of
from awoke.settings import Settings

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
        {"registry_oauth_url": "http://127.0.0.1:1/token", "registry_user": "u", "registry_password": "secret"},
    ],
)
def test_the_client_has_what_the_settings_say_and_shows_no_secret(more: dict[str, Any]) -> None:
    with open_registry(Settings(registry_url=URL, **more)) as registry:
        assert registry.url == URL
        assert "secret" not in repr(registry)


def test_a_file_that_does_not_exist_is_one_clear_error(tmp_path: Any) -> None:
    with pytest.raises(awoke.ConfigError, match=r"none\.pem"):
        open_registry(Settings(registry_url="https://127.0.0.1:1", registry_ca=str(tmp_path / "none.pem")))


def test_schemas_open_it_on_first_use() -> None:
    schemas = schemas_of(Settings(registry_url=URL, registry_register="always"))
    assert schemas.registry.url == URL
    schemas.close()
