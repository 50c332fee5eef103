"""Reads settings from environment variables, and distinguishes misspelt names from those of other programs.

A container platform adds variables of its own. A Kubernetes service named `awoke-kafka` is in the environment of each
pod as `AWOKE_KAFKA_PORT=tcp://10.0.0.1:9092`, `AWOKE_KAFKA_SERVICE_HOST` and so on; those describe the service, and
are no settings. A compose file passes a variable that the host does not have as an empty one, which counts as unset.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
from collections.abc import Collection, Iterable
from typing import Any

from awoke.errors import ConfigError
from awoke.text.printable import is_of_other_bytes
from awoke.text.secrets import is_secret, shown_value

PREFIX = "AWOKE_"
KAFKA_PREFIX = "AWOKE_KAFKA_"
OTHERS = frozenset({"AWOKE_MASK_KEY", "AWOKE_RPC_SECRET"})
"""Variables that single commands read; they are no settings."""
SIMILARITY_MIN = 0.8
"""A name that is at least this similar to a setting's counts as misspelt (`difflib`'s ratio)."""

LINK_NAME = re.compile(r"\w+?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
"""The names of variables that describe a service, which no setting and no property of librdkafka has."""
LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+:\d+")
LINKED_PORT = re.compile(r"(\w+)_PORT_\d+_(TCP|UDP|SCTP)")
"""A service that is linked has such a variable; its name is the first group."""


def variables() -> dict[str, str]:
    """Returns awoke's variables that are set to something. The line end of a secret's file is no part of a value.

    Raises:
        ConfigError: A value has the quotes that its writer meant for a shell, or is not UTF-8.
    """
    ours = {name: value.rstrip("\r\n") for name, value in os.environ.items() if name.startswith(PREFIX)}
    services = {found[1] for name in ours if (found := LINKED_PORT.fullmatch(name))}
    kept = {name: value for name, value in ours.items() if value.strip() and not _is_link(name, value, services)}
    for name, value in kept.items():
        if is_of_other_bytes(value):
            raise ConfigError(f"{name}: the value is not UTF-8", name.removeprefix(PREFIX).lower())
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" and not is_secret(name):
            shown = shown_value(name, value)
            text = f"{name}: the value {shown} has quotes, which no shell has removed: leave them out"
            raise ConfigError(text, name.removeprefix(PREFIX).lower())
    return kept


def _is_link(name: str, value: str, services: Collection[str]) -> bool:
    """Returns whether a variable describes a service: Kubernetes sets such ones, and so does `docker run --link`."""
    if LINK_NAME.fullmatch(name):
        return True
    for ending, is_shaped in (
        ("_PORT", LINK_ADDRESS.fullmatch(value) is not None),
        ("_NAME", value.startswith("/")),
    ):
        if name.endswith(ending) and is_shaped and name.removesuffix(ending) in services:
            return True
    return any(name.startswith(f"{service}_ENV_") for service in services)


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
    for variable, value in variables().items():
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
    return sorted(name for name in variables() if name not in known and not name.startswith(KAFKA_PREFIX))


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
