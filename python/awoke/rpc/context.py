"""The call that a method is carrying out: who calls, how long it may take, and whether anybody still waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, Unpack

from awoke._native import Work
from awoke.errors import ClosedError
from awoke.message import RecordOptions

logger = logging.getLogger(__name__)


class Sender(Protocol):
    """What sends messages."""

    def produce(self, topic: str, value: Any, **options: Unpack[RecordOptions]) -> None:
        """Send a message. Does not block."""


class IncomingCall:
    """The call that a method is carrying out. Any thread may look at it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.method = work.name
        self.id = work.id
        """What its caller has named it."""
        self.contribution: Sender | None = work.contribution
        """Of an exactly-once service: what is sent through it is seen together with the reply, or not at all."""
        self.caller = work.caller
        """Who calls, by its own word; see `docs/rpc.md` for signed calls."""
        self.idempotency_key = work.idempotency_key
        """The same for all attempts at one call; None where its caller gave none."""

    @property
    def key(self) -> bytes | None:
        """Calls with one key are carried out in order."""
        return self._work.message.key

    @property
    def headers(self) -> Mapping[str, bytes | None]:
        """All headers; of several with one name the last. Of a signed call only those that its caller has signed."""
        headers, signed = dict(self._work.message.headers), self._work.signed_names
        return headers if signed is None else {name: headers[name] for name in signed if name in headers}

    @property
    def until_s(self) -> float:
        """When its caller stops waiting, on `time.monotonic()`."""
        return self._work.until_s

    @property
    def remaining_s(self) -> float:
        """How long its caller still waits; 0 when it does no more."""
        return self._work.remaining_s

    @property
    def is_cancelled(self) -> bool:
        """Whether its caller waits no more: it has cancelled the call, or the deadline has passed."""
        return self._work.is_cancelled

    def wait_cancelled(self, timeout_s: float | None = None) -> bool:
        """Wait until its caller waits no more, at most so long; whether it does not. Blocks."""
        left_s = self.remaining_s if timeout_s is None else min(timeout_s, self.remaining_s)
        cancelled = threading.Event()
        self.when_cancelled(cancelled.set)
        try:
            cancelled.wait(left_s)
        finally:
            self._work.forget(cancelled.set)
        return self.is_cancelled

    def when_cancelled(self, function: Callable[[], object]) -> None:
        """Call a function when the caller cancels, on the thread that learns of it; at once if it has."""
        if not self._work.when_cancelled(function):
            function()


def tell(functions: Iterable[Callable[[], object]]) -> None:
    """A caller has cancelled: call these. What one of them raises is logged."""
    for function in functions:
        try:
            function()
        except Exception:
            logger.exception("a function that was to be called when a call is cancelled failed")


current: ContextVar[Work | None] = ContextVar("current", default=None)


def current_call() -> IncomingCall:
    """The call that is being carried out here.

    Raises:
        ClosedError: none is: to be called from a method, on its thread or task.
    """
    work = current.get()
    if work is None:
        raise ClosedError("no remote call is being carried out here")
    incoming: IncomingCall = work.incoming
    return incoming
