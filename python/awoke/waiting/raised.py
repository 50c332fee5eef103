"""What becomes of an error that user code has raised: one rule for all that calls user code.

- `SystemExit` and `KeyboardInterrupt`, also within a group, ask for the end of the app: see `end_in`.
- A cancellation of a task by whoever owns the task goes on: see `is_of_owner` in `awoke.waiting.drive`.
- Everything else, whatever its class, is a failure of the message, the call or the hook that user code was called for.
  That includes a `CancelledError` of a task that user code has cancelled itself.

Callbacks, subscribers and the like are called for nothing that could fail: what they raise is reported here.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

ENDS = (SystemExit, KeyboardInterrupt)

_lock = threading.Lock()
_apps: list[Callable[[BaseException], object]] = []
"""Ask the apps that run in this process for their end."""


def end_in(error: BaseException) -> BaseException | None:
    """Returns the error that asks for the end of the app: this one, or one of its group; None if it is a failure."""
    errors = [error]
    while errors:
        found = errors.pop()
        if isinstance(found, ENDS):
            return found
        if isinstance(found, BaseExceptionGroup):
            errors += found.exceptions
    return None


def hear_ends(stop_app: Callable[[BaseException], object]) -> Callable[[], None]:
    """Has `stop_app` called with each end that `end_apps` is asked for; returns the function that ends this."""
    with _lock:
        _apps.append(stop_app)

    def end() -> None:
        with _lock:
            _apps.remove(stop_app)

    return end


def end_apps(error: BaseException) -> bool:
    """Asks the apps of this process for their end, because of this error; returns whether there are any."""
    with _lock:
        apps = list(_apps)
    for stop_app in apps:
        stop_app(error)
    return bool(apps)


def report(error: BaseException, logger: logging.Logger, text: str, *arguments: object) -> None:
    """Logs what user code has raised where nothing fails because of it; an error that asks for the end ends the apps.

    Without an app, the main thread raises the latter again: Ctrl-C comes that way. Does not block.
    """
    end = end_in(error)
    if end is not None and not end_apps(end) and threading.current_thread() is threading.main_thread():
        raise error
    logger.error(text, *arguments, exc_info=error)


def _forget_apps() -> None:
    """In a forked child the apps of the parent do not run."""
    _apps.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_apps)
