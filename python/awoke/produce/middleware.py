"""Functions that every outgoing message passes: they add headers, or replace values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from awoke.payloads.message import Outgoing

Middleware = Callable[[Outgoing], Outgoing]
"""Returns the message to be sent. Runs on the thread that sends; an exception keeps the message from being sent."""


def through(middleware: Sequence[Middleware], message: Outgoing) -> Outgoing:
    """Returns a message as the functions, called in their order, make it."""
    for each in middleware:
        message = each(message)
        if type(message) is not Outgoing:
            raise TypeError(f"middleware returns the awoke.Outgoing to be sent, not {type(message).__name__}")
    return message


def joined(middleware: Sequence[Middleware]) -> Callable[..., Outgoing]:
    """Returns the functions as one, which gets the parts of an `Outgoing`: the engine calls it for each message."""

    def passed(*parts: Any) -> Outgoing:
        return through(middleware, Outgoing(*parts))

    return passed
