"""Options that several commands have."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from awoke.cli import arguments
from awoke.cli.output import ask
from awoke.errors import ConfigError

BootstrapServers = Annotated[
    str | None, typer.Option("--bootstrap-servers", "-b", help="Brokers to begin with: host:port, separated by commas.")
]
Kafka = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        help="A librdkafka property, name=value, several times. Secrets: better by AWOKE_KAFKA_SASL_PASSWORD",
    ),
]


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Returns `name=value` words as a dictionary, and hides the secrets among them from other users.

    Raises:
        ConfigError: a word without an equals sign.
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
    str | None, typer.Option(help="The UNIX socket for commands; by default a file of the user's, named after the app.")
]


def confirm(question: str, yes: bool) -> None:
    """Asks, unless that was answered before.

    Raises:
        ConfigError: there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask at: say --yes", "--yes")
    if not ask(question):
        raise typer.Abort
