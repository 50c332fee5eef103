"""Checks values that user code gives, so that a wrong one is an error where it is given, and not a failure later."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from awoke.errors import ConfigError


def whole(owner: str, name: str, value: object, least: int, setting: str) -> None:
    """Refuses what is no whole number from `least`.

    Raises:
        ConfigError: says the owner and the name; its `property` is `setting`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{owner}: {name} must be a whole number from {least}, not {value!r}", setting)


def seconds(owner: str, name: str, value: Any, setting: str, *, is_zero_allowed: bool = True) -> None:
    """Refuses what is no finite number from 0, or above 0.

    Raises:
        ConfigError: as `whole`.
    """
    if not is_number(value) or value < 0 or (value == 0 and not is_zero_allowed):
        least = "from 0" if is_zero_allowed else "more than 0"
        raise ConfigError(f"{owner}: {name} must be a number, {least}, not {value!r}", setting)


def optional_seconds(owner: str, name: str, value: object, setting: str, *, is_zero_allowed: bool = True) -> None:
    """Refuses as `seconds`, but for None.

    Raises:
        ConfigError: as `whole`.
    """
    if value is not None:
        seconds(owner, name, value, setting, is_zero_allowed=is_zero_allowed)


def kind(owner: str, name: str, value: object, wanted: type, example: str) -> None:
    """Refuses what is neither None nor of this type; the error shows an example.

    Raises:
        ConfigError: its `property` is `name`.
    """
    if value is not None and not isinstance(value, wanted):
        raise ConfigError(f"{owner}: {name} is given as in {name}={example}, not {value!r}", name)


def options(owner: str, given: Mapping[str, Any], known: type[Any]) -> None:
    """Refuses options that the `TypedDict` `known` does not have.

    Raises:
        TypeError: Names the first unknown option.
    """
    unknown = sorted(given.keys() - known.__annotations__.keys())
    if unknown:
        raise TypeError(f"{owner}: there is no option {unknown[0]!r}")


TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""The names that Kafka accepts for a topic."""


def topic(owner: str, name: str, value: str) -> None:
    """Refuses what no broker takes as the name of a topic.

    Raises:
        ConfigError: says the owner; its `property` is `name`.
    """
    if not TOPIC.fullmatch(value) or value in (".", ".."):
        text = "a topic's name has 1 to 249 letters (a-z, A-Z), digits, and the characters . _ -"
        raise ConfigError(f"{owner}: {name} {value!r}: {text}", name)


def is_number(value: Any) -> bool:
    """Tells whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
