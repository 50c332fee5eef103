"""Finds the message that the running code handles, when a log line is written.

Nothing is recorded for each message, so that handlers pay nothing. A job is in a context variable, which tasks and
`asyncio.to_thread` inherit. The message is a local variable of the strategy's loop further up the stack.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from awoke.errors import ClosedError
from awoke.runtime.ledger import current_work
from awoke.runtime.loops import MESSAGE_LOOPS

if TYPE_CHECKING:
    from awoke._native import Message  # A supervisor writes a log, too, and loads no Kafka client.

DEPTH_MAX = 1_000
"""The most frames that are searched; the log line of a deeper handler names the job only."""


class Handled(NamedTuple):
    """The message that is being handled; `offset` and `attempt` are None within a hook."""

    topic: str
    partition: int
    offset: int | None
    attempt: int | None


NOTHING = Handled(None, None, None, None)  # type: ignore[arg-type]


class WithMessage(logging.Filter):
    """Gives log records the place of the message that is being handled: attributes for the format of a log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Sets `topic`, `partition`, `offset` and `attempt` of a record, None where there is none; returns True."""
        found = handled() or NOTHING
        for name, value in found._asdict().items():
            setattr(record, name, value)
        return True


def logger_with_message(name: str) -> logging.Logger:
    """Returns a logger whose records have the place of the message that is handled when they are written."""
    logger = logging.getLogger(name)
    if not any(isinstance(each, WithMessage) for each in logger.filters):
        logger.addFilter(WithMessage())
    return logger


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
    """Returns the message of the strategy's loop that calls this frame."""
    for _ in range(DEPTH_MAX):
        if frame is None:
            return None
        if frame.f_code in MESSAGE_LOOPS:
            variables = frame.f_locals
            message: Message[Any] | None = variables.get("message")
            if isinstance(variables, dict):
                # Before Python 3.13 it is a copy that the frame keeps: the batch would count as kept, and be copied.
                variables.clear()
            return message
        frame = frame.f_back
    return None
