"""The arguments and options that several commands share: one name for one thing, with one meaning."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from awoke.cli import arguments
from awoke.errors import ConfigError
from awoke.operate.dead_letters.letters import moment_ms

Target = Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app, as in shop:app.")]
BootstrapServers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,...",
        help="The first brokers to contact, by default those of AWOKE_BOOTSTRAP_SERVERS, awoke.toml or this machine.",
    ),
]
Kafka = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        metavar="NAME=VALUE",
        help="A librdkafka property; may be repeated. For secrets use AWOKE_KAFKA_SASL_PASSWORD and so on.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one document per line.")]
First = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PLACE",
        help="Begin at this place: earliest, latest, an offset, a time (2026-01-31T12:00) or an age (30m, 2h, 7d).",
    ),
]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="PLACE", help="End before this place: an offset, a time or an age."),
]
Last = Annotated[int | None, typer.Option(min=1, help="Begin with this many of the last messages of each partition.")]


def place(word: str, option: str = "--from") -> int | datetime | str:
    """Returns the offset, the time or the name (`earliest`, `latest`) that a word means.

    A time without a zone is in this machine's zone.

    Raises:
        ConfigError: It is none of these.
    """
    if word in ("earliest", "latest"):
        return word
    if word.isdecimal():
        return int(word)
    try:
        return datetime.fromtimestamp(moment_ms(word, datetime.now(UTC), option) / 1_000, UTC)
    except ConfigError:
        text = "earliest, latest, an offset, a time (2026-01-31T12:00) or an age (30m, 2h, 7d)"
        raise ConfigError(f"{option} takes {text}, not {word!r}", option) from None


def end_place(word: str | None) -> int | datetime | None:
    """Returns the first offset, or the time, that is not read any more; None for the present end.

    Raises:
        ConfigError: The word is neither.
    """
    found = None if word is None else place(word, "--to")
    if isinstance(found, str):
        raise ConfigError(f"--to takes an offset, a time or an age, not {found!r}", "--to")
    return found


def is_behind(message: Any, end: int | datetime | None) -> bool:
    """Returns whether a message lies at or behind an end."""
    if end is None:
        return False
    if isinstance(end, int):
        return bool(message.offset >= end)
    return bool((message.timestamp_ms or 0) >= end.timestamp() * 1_000)


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Returns `name=value` words as a dictionary, and hides the secrets among them from other users.

    Raises:
        ConfigError: A word has no equals sign, or no name.
    """
    found = {}
    for word in given or ():
        name, equals, value = word.partition("=")
        if not equals or not name:
            # Not quoted: it may be a secret.
            raise ConfigError(f"{option} takes name=value; what was given has no name, or no equals sign", option)
        found[name] = value
    arguments.hide_secrets(found)
    return found


Socket = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The UNIX socket for commands. By default a file of the user's, named after the app and its folder.",
    ),
]


Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing if the command succeeds.")]
