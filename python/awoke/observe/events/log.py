"""Writes events to the log: one line each, and one line for many errors of clients that say the same."""

from __future__ import annotations

import logging

from awoke.observe.broker_lines import BrokerLines
from awoke.observe.events.clients import ClientError, ClientLog
from awoke.observe.events.event import Event
from awoke.observe.events.group import OffsetsCommitted, PartitionsAssigned
from awoke.text.printable import harmless, shown
from awoke.text.secrets import without_userinfo

logger = logging.getLogger("awoke.events")
librdkafka_logger = logging.getLogger("awoke.librdkafka")


def log(event: Event, broker_lines: BrokerLines) -> None:
    """Writes an event to the log at its level. Any thread; does not block."""
    if isinstance(event, ClientLog):
        text = harmless(without_userinfo(event.text))
        librdkafka_logger.log(event.log_level, "%s: %s", event.facility, text)
        return
    if isinstance(event, OffsetsCommitted | PartitionsAssigned) and broker_lines.is_return():
        logger.info("brokers answer again")
    is_repeated = isinstance(event, ClientError) and not event.is_fatal and not broker_lines.is_change(event)
    write(event, logging.DEBUG if is_repeated else event.log_level)


def write(event: Event, level: int) -> None:
    """Writes an event to the log at this level, with the traceback of `error` where user code has raised it."""
    if not logger.isEnabledFor(level):
        return
    fields = event.fields
    error = fields.get("error")
    is_traced = event.is_traced
    left_out = {"error"} if is_traced or error is None else set()
    text = " ".join(f"{name}={shown(value)}" for name, value in fields.items() if name not in left_out)
    extra = {"event": event}  # For formatters that write fields apart.
    logger.log(level, "%s %s", event.name, without_userinfo(text), exc_info=error if is_traced else None, extra=extra)
