"""Tells which message the running code handles, and the rest of its context, when a log line is written.

A context variable holds what runs for the current job, and the message loop notes each message there: see `Acting`.
Tasks and `asyncio.to_thread` inherit the variable. They may outlive their message, so they know the job only.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from awoke.errors import ClosedError
from awoke.observe.ledger import acting, current_app
from awoke.observe.process import ThisProcess
from awoke.text.secrets import key_hash

if TYPE_CHECKING:
    from awoke._native import IncomingCall, Message  # A supervisor writes a log, too, and loads no Kafka client.


class Handled(NamedTuple):
    """The message that is being handled; what is not known, as in a hook, a batch or a task, is None."""

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
    current = acting.get()
    work = None if current is None else current.running
    if current is None or work is None:
        return None
    if not current.is_here():
        return Handled(work.topic, work.partition)
    if current.message is not None:
        return _handled_in(current.message)
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
