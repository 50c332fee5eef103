"""The options that several commands share."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from awoke.cli import arguments
from awoke.cli.output import ask
from awoke.errors import ConfigError

BootstrapServers = Annotated[
    str | None,
    typer.Option("--bootstrap-servers", "-b", help="The first brokers to contact: host:port, separated by commas."),
]
Kafka = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        help="A librdkafka property, name=value; several times. For secrets use AWOKE_KAFKA_SASL_PASSWORD and so on.",
    ),
]


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
        help="The UNIX socket for commands. By default a file of the user's, named after the app and its folder."
    ),
]


Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing if the command succeeds.")]


def confirm(question: str, yes: bool) -> None:
    """Asks a question, unless `yes` has answered it.

    Raises:
        ConfigError: There is no terminal.
        typer.Abort: The answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask at: say --yes", "--yes")
    if not ask(question):
        raise typer.Abort
