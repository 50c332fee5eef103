"""The number of partitions, the replication and the settings that a topic shall have on its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from awoke.errors import ConfigError
from awoke.preconditions import checks
from awoke.settings.config_values import ConfigValue, config_of

PARTITIONS_MAX, REPLICATION_MAX = 2**31 - 1, 2**15 - 1
"""The largest numbers that fit Kafka's protocol."""


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
    return Declaration(partitions, replication, config_of(owner, config))


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
