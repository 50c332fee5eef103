"""Runs the command line: the options before a command, and the exit code of an error."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from awoke.cli import commands, failures, output, versions
from awoke.cli.tables import aligned
from awoke.errors import AwokeError
from awoke.text.exit_codes import EXIT_FAILED, EXIT_USAGE
from awoke.text.printable import is_of_other_bytes, shown


def _show_version(context: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    output.say(versions.line())
    if context.params["verbose"]:
        for row in aligned(versions.rows()):
            output.say(row)
    raise typer.Exit


@commands.app.callback()
def options(
    # Eager options are read first: the version must know if more is wanted.
    verbose: Annotated[
        bool, typer.Option("--verbose", is_eager=True, help="With --version: show all libraries and the build.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Show the versions and exit.")
    ] = False,
    with_traceback: Annotated[bool, typer.Option("--traceback", help="Show errors with their traceback.")] = False,
) -> None:
    """Takes the options before the command; `failures` reads `--traceback`."""


def command_line(words: Sequence[str]) -> typer.Typer:
    """Returns the command line, with at least the commands that these words may mean."""
    # The options before a command take no values.
    commands.load(next((word for word in words if not word.startswith("-")), None))
    return commands.app


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The errors of a disk, to which standard output may lead."""


def _check_folder() -> None:
    """Raises an `AwokeError` if the working folder is gone: settings, the app and its socket are found from there."""
    try:
        os.getcwd()
    except OSError as error:
        text = f"the working folder can't be read: {error.strerror}. It was removed, or made again: change into it anew"
        raise AwokeError(text) from None


def main() -> None:
    """Runs the command line. An error is one line, without a traceback unless `--traceback` is given."""
    output.take_any_text()
    try:
        _check_folder()
        command_line(sys.argv[1:])()
    except AwokeError as error:
        failures.show(error)
        sys.exit(failures.code_of(error))
    except UnicodeEncodeError:
        wrong = next((word for word in sys.argv[1:] if is_of_other_bytes(word)), None)
        if wrong is None:
            raise
        failures.show(AwokeError(f"{shown(wrong)} on the command line is not UTF-8, which names in Kafka are"))
        sys.exit(EXIT_USAGE)
    except BrokenPipeError:
        output.drop_the_rest()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        if error.errno not in FULL:
            raise
        output.drop_the_rest()
        failures.show(AwokeError(f"the output can't be written: {error.strerror}"))
        sys.exit(EXIT_FAILED)
