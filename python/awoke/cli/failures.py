"""The text and the exit code of an error of the command line."""

from __future__ import annotations

import sys
import traceback

from awoke.cli.output import say_styled
from awoke.errors import AwokeError, ConfigError, UnknownTopic, page_command
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_FAILED, EXIT_USAGE


def show(error: AwokeError) -> None:
    """Writes an error to standard error, on one line, and the command that prints its page.

    With `--traceback`, its traceback comes first.
    """
    if "--traceback" in sys.argv:
        say_styled("".join(traceback.format_exception(error)), err=True, keep="\n")
    text = " ".join(str(error).splitlines())
    say_styled(f"error: {text}", "red", err=True)
    if (command := page_command(type(error))) is not None:
        say_styled(f"what to do: {command}", "dim", err=True)


def code_of(error: AwokeError) -> int:
    """Returns the exit code of a command that failed."""
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED


def code_of_run(error: AwokeError) -> int:
    """Returns the exit code of `awoke run` if the app could not start, in one process or in a swarm."""
    return EXIT_CONFIGURATION if isinstance(error, (ConfigError, UnknownTopic)) else EXIT_FAILED
