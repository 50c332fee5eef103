"""The call that is executed here: its caller, its time, and whether the caller still waits. Deadlines of a block."""

from __future__ import annotations

import contextlib
import logging
import math
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


class BlockDeadline:
    """The deadline of a block, in all tasks and threads to which its context goes."""

    def __init__(self, timeout_s: float | None, outer: BlockDeadline | None) -> None:
        self._until_s = math.inf if timeout_s is None else monotonic_s() + timeout_s
        self._outer = outer

    def lift(self) -> None:
        """Ends it before its block ends: what still runs then is no longer a part of what had to be quick."""
        self._until_s = math.inf

    def left_s(self) -> float:
        """Returns the time until it, or until that of an outer block; infinite where there is none."""
        own_s = self._until_s - monotonic_s()
        return own_s if self._outer is None else min(own_s, self._outer.left_s())


until: ContextVar[BlockDeadline | None] = ContextVar("awoke_until", default=None)
"""The time at which the calls of a block must have ended."""


@contextlib.contextmanager
def deadline(timeout_s: float | None) -> Iterator[BlockDeadline]:
    """Ends every call that is made within the block at the latest `timeout_s` from now; None changes nothing.

    Of blocks within each other the earliest deadline counts. It goes with the context, so with the task: use it
    in one, not across several. Tasks that are made in the block have it, too, until it is lifted.
    """
    block = BlockDeadline(timeout_s, until.get())
    token = until.set(block)
    try:
        yield block
    finally:
        until.reset(token)


def limited(timeout_s: float) -> float:
    """Returns the time that a call may take: that of its caller, of the call that is executed here, and of the block.

    In seconds; negative where the time is over, and then no call is made.
    """
    executing, block = current.get(), until.get()
    if executing is not None:
        timeout_s = min(timeout_s, executing.remaining_s)
    return timeout_s if block is None else min(timeout_s, block.left_s())
