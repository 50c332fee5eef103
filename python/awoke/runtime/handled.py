"""Finds the message that the running code handles, when a log line is written.

Nothing is written down for a message: handlers pay nothing. A job leaves itself in a context variable, which tasks and
`asyncio.to_thread` inherit. The message is the one that the executor's loop has in hand further up the stack.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from awoke.errors import ClosedError
from awoke.runtime.ledger import current_work

if TYPE_CHECKING:
    from awoke._native import Message

DEPTH_MAX = 1_000
"""Frames that are looked at; a deeper handler's line names the job only."""


class Handled(NamedTuple):
    """The message that is being handled; of a batch or a hook only what is known."""

    topic: str
    partition: int
    offset: int | None
    attempt: int | None


def handled() -> Handled | None:
    """Returns the message that the calling thread or task handles; None outside of handlers. Does not block."""
    work = current_work()
    if work is None:
        return None
    message = _message_of(sys._getframe(1))
    if message is not None:
        return Handled(message.topic, message.partition, message.offset, message.attempt)
    with contextlib.suppress(AttributeError, ClosedError):  # A hook has no messages, a job that has ended no more.
        return Handled(work.topic, work.partition, work.first_offset, work.attempt)
    return Handled(work.topic, work.partition, None, None)


def _message_of(frame: FrameType | None) -> Message[Any] | None:
    """Returns the message of the executor's loop that calls this frame."""
    loops = _loops()
    for _ in range(DEPTH_MAX):
        if frame is None:
            return None
        if frame.f_code in loops:
            variables = frame.f_locals
            message: Message[Any] | None = variables.get("message")
            if isinstance(variables, dict):
                # Before Python 3.13 it is a copy that the frame keeps: the batch would count as kept, and be copied.
                variables.clear()
            return message
        frame = frame.f_back
    return None


@functools.cache
def _loops() -> frozenset[CodeType]:
    """The functions that call a handler for each message, which their variable `message` holds."""
    from awoke.runtime.async_executor import AsyncExecutor
    from awoke.runtime.executor import Executor

    names = ("_call", "_call_with_output", "_call_and_go_on", "_collect")
    async_names = ("_call_async", "_call_and_go_on_async", "_collect_async")
    sync = {getattr(Executor, name).__code__ for name in names}
    return frozenset(sync | {getattr(AsyncExecutor, name).__code__ for name in async_names})
