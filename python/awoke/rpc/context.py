"""The call that is executed here: its caller, its time, and whether the caller still waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Protocol, Unpack

from awoke._native import IncomingCall
from awoke.errors import ClosedError
from awoke.message import RecordOptions

logger = logging.getLogger(__name__)


class Sender(Protocol):
    """Sends messages."""

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None:
        """Sends a message. Does not block."""


def call_all(functions: Iterable[Callable[[], object]]) -> None:
    """Calls the callbacks of a call that was cancelled. An error that one of them raises is logged."""
    for function in functions:
        try:
            function()
        except Exception:
            logger.exception("a function that was to be called when a call is cancelled failed")


current: ContextVar[IncomingCall | None] = ContextVar("current", default=None)


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
