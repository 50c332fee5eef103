"""Finds the message that the running code handles, and the rest of its context, when a log line is written.

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
from awoke.observe.ledger import current_app, current_work
from awoke.observe.loops import MESSAGE_LOOPS
from awoke.observe.process import ThisProcess
from awoke.text.secrets import key_hash

if TYPE_CHECKING:
    from awoke._native import IncomingCall, Message  # A supervisor writes a log, too, and loads no Kafka client.

DEPTH_MAX = 1_000
"""The most frames that are searched; the log line of a deeper handler names the job only."""


class Handled(NamedTuple):
    """The message that is being handled; what is not known, as in a hook or a batch, is None."""

    topic: str
    partition: int
    offset: int | None = None
    attempt: int | None = None
    key_hash: str | None = None
    """The same for all messages of a key, which it does not show."""


CONTEXT = ("app", "node", *Handled._fields, "method", "trace_id", "span_id")
"""The names of all that log lines know of the running code."""


class WithContext(logging.Filter):
    """Gives log records what is known of the running code: the attributes of `CONTEXT`, for the format of a log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Sets the attributes of a record, None where there is no value; returns True."""
        found = context()
        for name in CONTEXT:
            setattr(record, name, found.get(name))
        return True


def logger_with_context(name: str) -> logging.Logger:
    """Returns a logger whose records know the message that is handled when they are written."""
    logger = logging.getLogger(name)
    if not any(isinstance(each, WithContext) for each in logger.filters):
        logger.addFilter(WithContext())
    return logger


def context() -> dict[str, Any]:
    """Returns what is known of the running code, by the names in `CONTEXT`. Does not block.

    Outside of handlers it is the process and the current trace.
    """
    call = _call()
    found = handled() if call is None else _handled_in(call.message)
    values = {
        "app": current_app(),
        "node": ThisProcess.node,
        **({} if found is None else found._asdict()),
        "method": None if call is None else call.method,
        **_trace(),
    }
    return {name: value for name, value in values.items() if value is not None}


def handled() -> Handled | None:
    """Returns the message that the calling thread or task handles; None outside of handlers. Does not block."""
    work = current_work()
    if work is None:
        return None
    message = _message_of(sys._getframe(1))
    if message is not None:
        return _handled_in(message)
    with contextlib.suppress(AttributeError, ClosedError):  # A hook has no messages, a job that has ended no more.
        return Handled(work.topic, work.partition, work.first_offset, work.attempt)
    return Handled(work.topic, work.partition)


def _handled_in(message: Message[Any]) -> Handled:
    return Handled(message.topic, message.partition, message.offset, message.attempt, key_hash(message.raw_key))


def _call() -> IncomingCall | None:
    """Returns the remote call that the calling thread or task executes."""
    module = sys.modules.get("awoke.rpc.context")  # A supervisor has not imported it.
    return None if module is None else module.current.get()


def _trace() -> dict[str, str]:
    """Returns the ids of the current OpenTelemetry span, if the process has one."""
    trace = sys.modules.get("opentelemetry.trace")
    span = None if trace is None else trace.get_current_span().get_span_context()
    if span is None or not span.is_valid:
        return {}
    return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}


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
