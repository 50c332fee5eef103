"""Ends a process that a handler has forked with `os.fork` and let return to awoke.

It has a copy of the job, and none of the threads that could complete it. If it went on, it would call the handler for
the messages that its parent handles, too. It stands alone because the loop over messages and the executor both ask.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import NoReturn

from awoke.observe.ledger import current_work
from awoke.runtime.process.ending import flush_streams
from awoke.text.exit_codes import EXIT_FAILED, code_of

logger = logging.getLogger(__name__)

forked: list[int] = []
"""The process that was forked by a handler, if that is this one. Asked for each message, so it is no function."""


def _mark() -> None:
    if current_work() is not None:
        forked.append(os.getpid())


os.register_at_fork(after_in_child=_mark)


def end_child() -> NoReturn:
    """Ends this process: with the code of `sys.exit` if the handler called that, else with an error in the log."""
    error = sys.exc_info()[1]
    code = EXIT_FAILED
    with contextlib.suppress(BaseException):
        if isinstance(error, SystemExit):
            code = code_of(error)
        else:
            how = "has returned from the handler that forked it" if error is None else "has raised an error"
            text = "process %d %s, and ends: end such a process with os._exit(), or use multiprocessing"
            logger.error(text, os.getpid(), how, exc_info=error)
        flush_streams()
    os._exit(code)
