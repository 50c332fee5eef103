"""Reads settings from environment variables, and distinguishes misspelt names from those of other programs."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Iterable
from typing import Any

from awoke.errors import ConfigError

PREFIX = "AWOKE_"
KAFKA_PREFIX = "AWOKE_KAFKA_"
OTHERS = frozenset({"AWOKE_MASK_KEY", "AWOKE_RPC_SECRET"})
"""Variables that single commands read; they are no settings."""
SIMILARITY_MIN = 0.8
"""A name that is at least this similar to a setting's counts as misspelt (`difflib`'s ratio)."""


def variable_of(name: str) -> str:
    """Returns the environment variable of a setting."""
    return PREFIX + name.upper()


def read(names: Iterable[str]) -> dict[str, Any]:
    """Returns the settings of these names that the environment has, and librdkafka's properties under `kafka`.

    Raises:
        ConfigError: a variable is a misspelt setting; names both.
    """
    known = frozenset(names)
    found: dict[str, Any] = {"kafka": {}}
    for variable, value in os.environ.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(KAFKA_PREFIX):
            found["kafka"][variable.removeprefix(KAFKA_PREFIX).lower().replace("_", ".")] = value
        elif variable.startswith(PREFIX) and name in known:
            found[name] = value
        elif variable.startswith(PREFIX) and variable not in OTHERS:
            _refuse_misspelt(variable, known)
    return found


def unknown(names: Iterable[str]) -> list[str]:
    """Returns the variables with awoke's prefix that are no settings and not similar to any."""
    known = {variable_of(name) for name in names} | OTHERS
    ours = (each for each in os.environ if each.startswith(PREFIX) and not each.startswith(KAFKA_PREFIX))
    return sorted(each for each in ours if each not in known)


def _refuse_misspelt(variable: str, known: frozenset[str]) -> None:
    if variable == KAFKA_PREFIX.rstrip("_"):
        text = f"{variable}: is no setting; librdkafka's properties have a variable each, as in {KAFKA_PREFIX}LINGER_MS"
        raise ConfigError(text, variable)
    meant = similar(variable, known)
    if meant is not None:
        raise ConfigError(f"{variable}: there is no such setting; did you mean {meant}?", variable)


@functools.lru_cache(maxsize=1_024)
def similar(variable: str, known: frozenset[str]) -> str | None:
    """Returns the variable that was probably meant, or None."""
    first, underscore, rest = variable.removeprefix(PREFIX).partition("_")
    if underscore and is_similar(first, "KAFKA"):
        return KAFKA_PREFIX + rest
    name = variable.removeprefix(PREFIX).lower()
    close = difflib.get_close_matches(name, sorted(known), 1, SIMILARITY_MIN)
    return variable_of(close[0]) if close else None


def is_similar(word: str, other: str) -> bool:
    """Returns whether two words are so similar that one may be the other, misspelt."""
    return difflib.SequenceMatcher(None, word, other).ratio() >= SIMILARITY_MIN
