"""The parts of a report that tell of its producers."""

from __future__ import annotations

import msgspec


class Output(msgspec.Struct, kw_only=True, gc=False):
    """A topic to which this process sends, and that keeps it waiting."""

    topic: str
    messages: int
    """Those that wait."""
    since_ms: int | None
    """Since when no message was acknowledged, as statistics of librdkafka tell it; None: some are, but the queue of the
    producer is full."""


class Aborted(msgspec.Struct, kw_only=True, gc=False):
    """The transactions of this process that were aborted for one reason."""

    code: str
    """The name of the error, as in `PRODUCER_FENCED`."""
    count: int
    """Since the start."""
    last_ms: int
    last_text: str
