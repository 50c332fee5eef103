"""`awoke act`: executes a command of the console on this host, with a reason, and leaves a record of it."""

from __future__ import annotations

from typing import Annotated

import typer

from awoke.cli.commands import Section, command
from awoke.cli.options import Quiet, Socket, Target
from awoke.cli.output import say, say_done
from awoke.cli.swarm import ask
from awoke.errors import ConfigError
from awoke.operate.commands.verbs import VERBS, verb_of


@command(Section.STEER)
def act(
    target: Target,
    verb: Annotated[
        str,
        typer.Argument(
            help="The command, as in pause, resume, seek, skip, retry, dead_letter, stacks.",
            autocompletion=lambda: list(VERBS),
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="Its arguments, as in topic=orders partition=0 offset=7."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, for the audit; needed.")] = "",
    socket: Socket = None,
    quiet: Quiet = False,
) -> None:
    """Execute a command of the console on this host: each is one record in the audit topic (console=True)."""
    if not reason.strip():
        raise ConfigError("an act needs a reason, for the audit; pass --reason TEXT", "--reason")
    words = dict(map(pair_of, arguments or ()))
    found = ask(target, socket, verb, reason=reason, **verb_of(verb).parsed(words))
    say_done(str(found.get("text") or f"{verb} is done"), is_quiet=quiet)
    for stack in found.get("stacks", ()):
        names = (f"node {stack['node']}" if "node" in stack else "", stack["owner"], stack["name"])
        say("")
        say(" · ".join(each for each in names if each))
        for line in stack["lines"]:
            say(f"  {line}")


def pair_of(text: str) -> tuple[str, str]:
    """Returns the name and the value of an argument.

    Raises:
        ConfigError: It has no name.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"an argument is NAME=VALUE, as in partition=0, not {text!r}", "arguments")
    return name, value
