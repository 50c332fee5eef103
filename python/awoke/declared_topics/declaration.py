"""The number of partitions, the replication and the settings that a topic shall have on its cluster."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from awoke import checks
from awoke.errors import ConfigError

ConfigValue = str | int | float | bool
"""A value of a topic's setting, as user code gives it."""

PARTITIONS_MAX, REPLICATION_MAX = 2**31 - 1, 2**15 - 1
"""The largest numbers that fit Kafka's protocol."""
SETTING = re.compile(r"[a-zA-Z0-9._-]+")
"""The names that a topic's setting may have."""


class Declaration(NamedTuple):
    """A topic as it shall be. None: the brokers choose, and the cluster's number is not compared."""

    partitions: int | None
    replication: int | None
    config: Mapping[str, str]
    """The settings that are declared, with their values as Kafka writes them. Others are not compared."""

    def text(self) -> str:
        """Returns the declaration for people."""
        numbers = [
            f"{number} {noun}{'' if number == 1 else 's'}"
            for number, noun in ((self.partitions, "partition"), (self.replication, "replica"))
            if number is not None
        ]
        settings = [f"{name}={value}" for name, value in self.config.items()]
        return ", ".join([*numbers, *settings]) or "as the brokers choose"


def declaration_of(
    topic: str, partitions: int | None, replication: int | None, config: Mapping[str, ConfigValue] | None
) -> Declaration | None:
    """Returns the declaration of a topic; None if nothing is declared.

    Raises:
        ConfigError: A number is none of Kafka's, or a setting has no name or no value.
    """
    if partitions is None and replication is None and config is None:
        return None
    owner = f"topic {topic!r}"
    for name, number, most in (
        ("partitions", partitions, PARTITIONS_MAX),
        ("replication", replication, REPLICATION_MAX),
    ):
        if number is not None:
            checks.whole(owner, name, number, 1, name)
            if number > most:
                raise ConfigError(f"{owner}: {name} must be at most {most}, not {number}", name)
    return Declaration(partitions, replication, _config(owner, config))


def _config(owner: str, config: Any) -> Mapping[str, str]:
    if config is not None and not isinstance(config, Mapping):
        text = f'{owner}: config is given as in config={{"cleanup.policy": "compact"}}, not {config!r}'
        raise ConfigError(text, "config")
    written = {}
    for name, value in (config or {}).items():
        if not isinstance(name, str) or not SETTING.fullmatch(name):
            raise ConfigError(f"{owner}: {name!r} is no name of a topic's setting, as retention.ms is", "config")
        written[name] = _written(f"{owner}: setting {name}", value)
    return written


def _written(setting: str, value: Any) -> str:
    """Returns a value as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        # Kafka takes a decimal point only where a setting is a fraction: 7 * 24 * 3.6e6 is a time in milliseconds.
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, int) or (isinstance(value, str) and "\0" not in value):
        return str(value)
    text = f"{setting} is a text, a finite number, True or False, not {value!r}"
    raise ConfigError(f"{text}; leave a setting out to keep the cluster's" if value is None else text, "config")


def is_same(declared: str, found: str) -> bool:
    """Tells whether two texts are one value for Kafka, which describes values in a form of its own."""
    return declared == found or _plain(declared) == _plain(found)


def _plain(text: str) -> object:
    """Returns a value without what Kafka ignores: spaces, leading zeros, the case of `true`."""
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower()
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return [part.strip() for part in text.split(",")]
    return number if number.is_finite() else text
