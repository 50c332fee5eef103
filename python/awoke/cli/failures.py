"""Shows errors in one line each, and says with which code the command line ends."""

from __future__ import annotations

import sys
import traceback

from awoke.cli.output import say_styled
from awoke.errors import AwokeError, ConfigError, UnknownTopic
from awoke.exit_codes import EXIT_CONFIGURATION, EXIT_GAVE_UP, EXIT_USAGE


def show(error: AwokeError) -> None:
    """Writes an error to standard error, with its traceback where `--traceback` is given."""
    if "--traceback" in sys.argv:
        say_styled("".join(traceback.format_exception(error)), err=True, keep="\n")
    text = " ".join(str(error).splitlines())
    say_styled(f"error: {text}", "red", err=True)


def code_of(error: AwokeError) -> int:
    """Returns the exit code of a command that failed."""
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_GAVE_UP


def code_of_run(error: AwokeError) -> int:
    """Returns the exit code of `awoke run` when the app could not start: the same for one process and for a swarm."""
    return EXIT_CONFIGURATION if isinstance(error, (ConfigError, UnknownTopic)) else EXIT_GAVE_UP
