"""The command line's way in, as the script `awoke` and as `python -m awoke`.

It stands alone because it imports next to nothing: a signal that comes while the rest is imported, or the app, ends
`awoke run` with 0. Nothing has been processed then. The app's own handlers take over when it starts, and what has
ended keeps its exit code, whichever signal comes while the process goes away.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

HEARD = (signal.SIGTERM, signal.SIGINT)


def main() -> None:
    """Runs the command line, and ends the process."""
    is_run = is_command(sys.argv[1:], "run")
    if is_run:
        _hear_early()
    from awoke.cli import main as run_command

    try:
        run_command()
    except SystemExit as end:
        if is_run:
            _keep(end.code)
        raise


def is_command(words: Sequence[str], command: str) -> bool:
    """Returns whether these words may be this command: options come before it, each with a value or without."""
    for before, word in zip(("", *words), words, strict=False):
        if word == command:
            return True
        if not word.startswith("-") and not before.startswith("-"):
            return False
    return False


def _hear_early() -> None:
    """Has the first signal end the process in order, and the second one at once."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for each in HEARD:
            signal.signal(each, signal.SIG_DFL)
        raise SystemExit(0)

    for each in HEARD:
        signal.signal(each, end)


def _keep(code: object) -> None:
    """Has later signals end the process with this exit code."""
    number = code if isinstance(code, int) else int(code is not None)
    for each in HEARD:
        signal.signal(each, lambda *_: os._exit(number))


if __name__ == "__main__":
    main()
