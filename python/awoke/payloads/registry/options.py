"""The options of a schema registry's client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

from awoke.errors import ConfigError
from awoke.payloads.registry.access import Auth, BasicAuth, BearerToken, OAuth, Tls
from awoke.preconditions import checks

TIMEOUT_S = 5.0
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


class RegistryOptions(TypedDict, total=False):
    """The options of `SchemaRegistry` and `AsyncSchemaRegistry`."""

    auth: Auth | None
    """Shows who the client is; None takes user and password of the address, if it has them."""
    tls: Tls | None
    """Certificates; None trusts the system's authorities."""
    timeout_s: float
    """The time for a connection, and for each wait for the next part of an answer; 5 by default. A request fails when
    the end of its answer comes later than that after its begin. Each address has this time."""
    cache_max: int
    """The number of schemas that are kept by id, by GUID, and by subject with schema; 1,000 of each by default."""
    headers: Mapping[str, str]
    """Headers for all requests to the registry; their values are treated as secrets."""


def check(options: RegistryOptions) -> None:
    """Refuses wrong options.

    Raises:
        TypeError: An unknown option.
        ConfigError: A wrong value. The text quotes no value that may be a secret.
    """
    owner = "schema registry"
    checks.options(owner, options, RegistryOptions)
    checks.seconds(owner, "timeout_s", options.get("timeout_s", TIMEOUT_S), "timeout_s", is_zero_allowed=False)
    checks.whole(owner, "cache_max", options.get("cache_max", 1), 1, "cache_max")
    _check_kind("auth", options.get("auth"), (BasicAuth, BearerToken, OAuth))
    _check_kind("tls", options.get("tls"), (Tls,))
    for name, value in options.get("headers", {}).items():
        is_text = isinstance(name, str) and isinstance(value, str)
        if not is_text or not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise ConfigError(
                f"{owner}: headers: {name!r}: name or value is no text that a header can carry", "headers"
            )


def _check_kind(name: str, value: object, kinds: tuple[type, ...]) -> None:
    if value is not None and not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ConfigError(f"schema registry: {name} is a {wanted}, not a {type(value).__name__}", name)
