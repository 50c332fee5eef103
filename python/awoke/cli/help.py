"""`awoke help`: the help of a command, for those who ask that way."""

from __future__ import annotations

from typing import Annotated

import typer

from awoke.cli import commands
from awoke.cli.commands import Section


@commands.command(Section.TOOLS, "help")
def show_help(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command, as in `awoke help topics delete`.")
    ] = None,
) -> None:
    """Show the help of a command, or of all."""
    commands.load(next(iter(words or ()), None))
    commands.app([*(words or ()), "--help"], prog_name=context.find_root().info_name)
