"""librdkafka's properties: as text, with awoke's defaults, and the numbers among them that awoke needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from awoke.errors import ConfigError
from awoke.settings.fields import Settings
from awoke.settings.oauth import ClientProperties, TokenSource
from awoke.text.printable import printable
from awoke.text.secrets import shown_value

KafkaValue = str | int | float | bool

POLL_INTERVAL = "max.poll.interval.ms"
SESSION_TIMEOUT = "session.timeout.ms"
HEARTBEAT_INTERVAL = "heartbeat.interval.ms"
POLL_INTERVAL_MS, SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS = 300_000, 45_000, 3_000
"""librdkafka's defaults."""


def number(kafka: Mapping[str, str], name: str, default: int) -> int:
    """Returns a number among librdkafka's properties, or the default. librdkafka refuses text that is no number."""
    text = kafka.get(name, "").strip()
    return int(text) if text.isdecimal() else default


def poll_interval_s(kafka: Mapping[str, str]) -> float:
    """Returns the time without a poll after which a member counts as dead."""
    return number(kafka, POLL_INTERVAL, POLL_INTERVAL_MS) / 1_000


def properties_of(value: Any, origin: str) -> dict[str, str]:
    """Returns librdkafka's properties as text.

    Raises:
        ConfigError: They are no table.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"setting 'kafka' ({origin}): must be a table of librdkafka's properties", "kafka")
    return {str(name): _text(each) for name, each in value.items()}


def _text(value: KafkaValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


STATISTICS_MS = "5000"
"""The interval of librdkafka's statistics, where metrics are served."""


embedded: set[str] = set()
"""Addresses of brokers inside this process."""

METADATA_REFRESH_MS = "30000"
"""The interval in which clients look for partitions that were added to their topics. In librdkafka's own 300 s such
partitions stay unread, and messages with a key go to partitions that other producers no longer choose."""


NAMED = "awoke-"
"""The `client.id` of a group's member is this and the name of its app, unless the user has set it."""


def client_properties(settings: Settings, **more: str) -> ClientProperties:
    """Returns librdkafka's properties for one client. The user's own win over awoke's defaults, and `more` over all.

    Raises:
        ConfigError: A property has a zero byte, an address a user, or a file can't be read.
    """
    given = {"bootstrap.servers": settings.bootstrap_servers, **settings.kafka}
    check_text_of_c(given)
    check_addresses(given)
    check_readable_files(settings.kafka)
    statistics = (
        {} if settings.metrics_port is None and not settings.console else {"statistics.interval.ms": STATISTICS_MS}
    )
    properties = ClientProperties(
        {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": "awoke",
            "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
            **statistics,
            **settings.kafka,
            **more,
        }
    )
    properties.token_source = None if settings.oauth_token is None else TokenSource(settings.oauth_token)
    return properties


def check_text_of_c(properties: Mapping[str, str]) -> None:
    """Refuses properties with a zero byte, where a text of C ends. It may be a secret: the error does not quote it.

    Raises:
        ConfigError: says the property.
    """
    for name, value in properties.items():
        if "\0" in name + value:
            raise ConfigError(f"property {printable(name)!r}: must not have a zero byte", name)


SCHEMES = frozenset(("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"))
"""The protocols that librdkafka takes before an address."""


def check_addresses(properties: Mapping[str, str]) -> None:
    """Refuses addresses of brokers that librdkafka would take for names of hosts: URLs, and those with a user.

    Raises:
        ConfigError: does not quote a user and a password.
    """
    for name in ("bootstrap.servers", "metadata.broker.list"):
        if "@" in properties.get(name, ""):
            text = (
                "has an address with a user; an address is host:port, and the user is sasl.username and sasl.password"
            )
            raise ConfigError(f"property {name!r}: {text}", name)
        for address in properties.get(name, "").split(","):
            scheme, found, rest = address.strip().partition("://")
            if found and scheme.lower() not in SCHEMES:
                text = f"{address.strip()!r} is a URL; a broker's address is HOST:PORT, as in {rest.partition('/')[0]}"
                raise ConfigError(f"property {name!r}: {text}", name)


def check_readable_files(properties: Mapping[str, object]) -> None:
    """Refuses properties of librdkafka's that name a file which can't be read: its own error does not name it.

    Raises:
        ConfigError: says the property, the file and why.
    """
    for name, value in properties.items():
        if name.endswith(".location") and isinstance(value, str) and value not in ("", "probe"):
            try:
                os.stat(value)
            except OSError as error:
                text = f"property {name!r}: {shown_value(name, value)!r} can't be read: {error.strerror}"
                raise ConfigError(text, name) from None
