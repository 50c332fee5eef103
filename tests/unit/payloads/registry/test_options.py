"""Options: wrong ones are refused, and secrets in them are not quoted."""

from __future__ import annotations

from typing import Any

import pytest

from awoke.errors import ConfigError
from awoke.payloads.registry import BasicAuth, Tls
from awoke.payloads.registry.options import RegistryOptions, check


def test_right_options_pass() -> None:
    check({})
    check({"auth": None, "tls": None})
    options: RegistryOptions = {
        "auth": BasicAuth("ada", "secret"),
        "tls": Tls(),
        "timeout_s": 0.5,
        "cache_max": 1,
        "headers": {"X-Tenant": "a b"},
    }
    check(options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auth", "canary"),
        ("auth", ("ada", "canary")),
        ("tls", "canary"),
        ("timeout_s", 0),
        ("timeout_s", float("inf")),
        ("cache_max", 0),
        ("cache_max", 1.5),
        ("headers", {"X-Key": "canary\r\nX-Other: 1"}),
        ("headers", {"X-Key": ""}),
        ("headers", {"X Key": "canary"}),
        ("headers", {"X-Key": b"canary"}),
    ],
)
def test_a_wrong_option_is_refused_by_name_without_its_secret(name: str, value: Any) -> None:
    options: Any = {name: value}
    with pytest.raises(ConfigError, match=f"schema registry: {name}") as refused:
        check(options)
    assert refused.value.property == name
    assert "canary" not in str(refused.value)


def test_an_unknown_option_is_refused() -> None:
    options: Any = {"timeout": 1}
    with pytest.raises(TypeError, match="no option 'timeout'"):
        check(options)
