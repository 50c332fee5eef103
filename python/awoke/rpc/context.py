"""The call that is executed here: its caller, its time, and whether the caller still waits. Deadlines of a block."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar

from awoke._native import IncomingCall
from awoke.errors import ClosedError
from awoke.waiting.clock import monotonic_s
from awoke.waiting.raised import report

logger = logging.getLogger(__name__)


class ForAnother(Exception):
    """Raised by a method: another responder, which reads the same topic, executes the call. It gets no reply here."""


def call_all(functions: Iterable[Callable[[], object]]) -> None:
    """Calls the callbacks of a call that was cancelled. An error that one of them raises is logged."""
    for function in functions:
        try:
            function()
        except BaseException as error:
            report(error, logger, "a function that was to be called when a call is cancelled failed")


current: ContextVar[IncomingCall | None] = ContextVar("awoke_call", default=None)


def current_call() -> IncomingCall:
    """Returns the call that is executed here. Does not block.

    Raises:
        ClosedError: no call is executed here; this is for a method, on its thread or task.
    """
    call = current.get()
    if call is None:
        raise ClosedError("no remote call is being executed here")
    call.mark_seen()
    return call


until: ContextVar[float | None] = ContextVar("awoke_until", default=None)
"""The time on awoke's clock at which the calls of a block must have ended."""


@contextlib.contextmanager
def deadline(timeout_s: float | None) -> Iterator[None]:
    """Ends every call that is made within the block at the latest `timeout_s` from now; None changes nothing.

    Of blocks within each other the earliest deadline counts. It goes with the context, so with the task: use it
    in one, not across several.
    """
    if timeout_s is None:
        yield
        return
    outer_s, until_s = until.get(), monotonic_s() + timeout_s
    token = until.set(until_s if outer_s is None else min(outer_s, until_s))
    try:
        yield
    finally:
        until.reset(token)


def limited(timeout_s: float) -> float:
    """Returns the time that a call may take: that of its caller, of the call that is executed here, and of the block.

    In seconds; negative when the time is over.
    """
    executing, until_s = current.get(), until.get()
    if executing is not None:
        timeout_s = min(timeout_s, executing.remaining_s)
    return timeout_s if until_s is None else min(timeout_s, until_s - monotonic_s())
