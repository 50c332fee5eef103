"""What becomes of an error that user code has raised: one rule for all that calls user code.

- `SystemExit` and `KeyboardInterrupt`, also within a group, ask for the end of the app: see `end_in` of `awoke.errors`.
- A cancellation of a task by the owner of the task goes on: see `is_of_owner` in `awoke.waiting.drive`.
- Everything else, whatever its class, is a failure of the message, the call or the hook that user code was called for.
  That includes a `CancelledError` of a task that user code has cancelled itself.

Callbacks, subscribers and the like are called for nothing that could fail: what they raise is reported here.
"""

from __future__ import annotations

import logging
import threading

from awoke.errors import end_apps, end_in


def report(error: BaseException, logger: logging.Logger, text: str, *arguments: object) -> None:
    """Logs what user code has raised where nothing fails because of it; an error that asks for the end ends the apps.

    Without an app, the main thread raises the latter again: Ctrl-C comes that way. Does not block.
    """
    end = end_in(error)
    if end is not None and not end_apps(end) and threading.current_thread() is threading.main_thread():
        raise error
    logger.error(text, *arguments, exc_info=error)
