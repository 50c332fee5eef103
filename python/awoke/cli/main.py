"""Runs the command line: the options before a command, and the exit code of an error."""

from __future__ import annotations

import platform
import sys
from typing import Annotated

import typer

import awoke
from awoke.cli import commands, failures, output
from awoke.errors import AwokeError
from awoke.exit_codes import EXIT_FAILED

app = commands.app


def versions() -> str:
    """Returns the versions of awoke, librdkafka and Python in one line."""
    return f"awoke {awoke.__version__} (librdkafka {awoke.librdkafka_version()}, Python {platform.python_version()})"


def _show_version(wanted: bool) -> None:
    if wanted:
        output.say(versions())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
    with_traceback: Annotated[bool, typer.Option("--traceback", help="Show errors with their traceback.")] = False,
) -> None:
    """Takes the options before the command; `failures` reads `--traceback`."""


commands.load()


def main() -> None:
    """Runs the command line. An error is one line, without a traceback unless `--traceback` is given."""
    output.take_any_text()
    try:
        app()
    except AwokeError as error:
        failures.show(error)
        sys.exit(failures.code_of(error))
    except BrokenPipeError:
        output.drop_the_rest()
        sys.exit(EXIT_FAILED)
