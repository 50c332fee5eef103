"""The command line as one Typer app. Each module of this package that has commands registers them here itself.

A new command is a new module: no list names it. `load` imports the modules that are named after a command.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

Function = TypeVar("Function", bound=Callable[..., Any])


class Sorted(TyperGroup):
    """Commands and groups of commands in the order of their names."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names, sorted."""
        return sorted(super().list_commands(ctx))


app = typer.Typer(
    name="awoke",
    cls=Sorted,
    help="A Kafka processing framework for Python in which nothing sleeps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Its tables cut the names of options at 80 columns.
    add_completion=False,
)


def command(function: Function) -> Function:
    """Registers a function as the command of its name."""
    return app.command()(function)


def group(name: str, text: str) -> typer.Typer:
    """Registers a group of commands, as in `awoke topics create`, and returns it."""
    found = typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(found, name=name)
    return found


def load(command: str | None = None) -> None:
    """Imports modules of this package, so that they register their commands.

    Those whose names begin with the command's, `topics` or `dead_letter_purge`; or all, where none is named so.
    """
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    begin = (command or "").replace("-", "_")
    named = [name for name in modules if name == begin or name.startswith(f"{begin}_")]
    for name in named or modules:
        importlib.import_module(f"{__package__}.{name}")
