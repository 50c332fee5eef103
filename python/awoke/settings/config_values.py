"""Converts settings of topics and brokers from values of Python to the texts that Kafka takes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from awoke.errors import ConfigError

ConfigValue = str | int | float | bool
"""A value of a setting, as user code gives it."""

SETTING = re.compile(r"[a-zA-Z0-9._-]+")
"""Matches the name of a setting."""


def config_of(owner: str, config: Any) -> dict[str, str]:
    """Returns settings with their values as Kafka writes them.

    Raises:
        ConfigError: It is no mapping, or a setting has no name or no value.
    """
    if config is not None and not isinstance(config, Mapping):
        text = f'{owner}: config is given as in config={{"cleanup.policy": "compact"}}, not {config!r}'
        raise ConfigError(text, "config")
    written = {}
    for name, value in (config or {}).items():
        if not isinstance(name, str) or not SETTING.fullmatch(name):
            raise ConfigError(f"{owner}: {name!r} is no name of a setting, as retention.ms is", "config")
        written[name] = _written(f"{owner}: setting {name}", value)
    return written


def changes_of(owner: str, changes: Mapping[str, ConfigValue | None]) -> list[tuple[str, str | None]]:
    """Returns changed settings as Kafka writes them; None takes one back to its default.

    Raises:
        ConfigError: It is no mapping, or a setting has no name or a wrong value.
    """
    if not isinstance(changes, Mapping):
        text = f'{owner}: settings are given as in {{"cleanup.policy": "compact"}}, not {changes!r}'
        raise ConfigError(text, "configs")
    written = config_of(owner, {name: value for name, value in changes.items() if value is not None})
    return [(name, written.get(name)) for name in changes]


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
