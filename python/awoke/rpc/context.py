"""The call that a method is carrying out: who calls, how long it may take, and whether anybody still waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from awoke._native import Request
from awoke.errors import ClosedError


class Sender(Protocol):
    """What sends messages."""

    def produce(
        self,
        topic: str,
        value: Any,
        *,
        key: bytes | str | None = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Send a message. Does not block."""


class Patience:
    """How long a caller waits, and whether it still does. Any thread."""

    was_given_up = False
    """Whether it has cancelled its call."""
    contribution: Sender | None = None
    """Where replies go that are committed with the offset."""
    _told: list[Callable[[], object]] | None = None
    """Who is to be told when it cancels."""

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s
        """When it stops waiting, on `time.monotonic()`."""

    @property
    def remaining_s(self) -> float:
        """How long it still waits; 0 when it does no more."""
        return max(0.0, self.until_s - time.monotonic())

    @property
    def is_cancelled(self) -> bool:
        """Whether it waits no more: it has cancelled, or the deadline has passed."""
        return self.was_given_up or time.monotonic() >= self.until_s

    def cancel(self) -> None:
        """It cancels."""
        with _telling:
            self.was_given_up = True
            told, self._told = self._told, None
        for each in told or ():
            each()

    def when_cancelled(self, function: Callable[[], object]) -> None:
        """Call a function when it cancels, on the thread that learns of it; at once if it has."""
        with _telling:
            if not self.was_given_up:
                self._told = [*(self._told or ()), function]
                return
        function()

    def forget(self, function: Callable[[], object]) -> None:
        """Call it no more."""
        with _telling:
            self._told = [each for each in self._told or () if each != function]


class IncomingCall:
    """The call that a method is carrying out. Any thread may look at it."""

    def __init__(self, request: Request, patience: Patience) -> None:
        self._request, self._patience = request, patience
        self.method = request.method
        self.id = request.id
        """What its caller has named it."""
        self.contribution = patience.contribution
        """Of an exactly-once service: what is sent through it is seen together with the reply, or not at all."""
        self.caller = request.caller
        """Who calls, by its own word; see `docs/rpc.md` for signed calls."""
        self.idempotency_key = request.idempotency_key
        """The same for all attempts at one call; None where its caller gave none."""

    @property
    def key(self) -> bytes | None:
        """Calls with one key are carried out in order."""
        return self._request.message.key

    @property
    def headers(self) -> Mapping[str, bytes | None]:
        """All headers; of several with one name the last."""
        return dict(self._request.message.headers)

    @property
    def until_s(self) -> float:
        """When its caller stops waiting, on `time.monotonic()`."""
        return self._patience.until_s

    @property
    def remaining_s(self) -> float:
        """How long its caller still waits; 0 when it does no more."""
        return self._patience.remaining_s

    @property
    def is_cancelled(self) -> bool:
        """Whether its caller waits no more: it has cancelled the call, or the deadline has passed."""
        return self._patience.is_cancelled

    def wait_cancelled(self, timeout_s: float | None = None) -> bool:
        """Wait until its caller waits no more, at most so long; whether it does not. Blocks."""
        left_s = self.remaining_s if timeout_s is None else min(timeout_s, self.remaining_s)
        cancelled = threading.Event()
        self.when_cancelled(cancelled.set)
        try:
            cancelled.wait(left_s)
        finally:
            self._patience.forget(cancelled.set)
        return self.is_cancelled

    def when_cancelled(self, function: Callable[[], object]) -> None:
        """Call a function when the caller cancels, on the thread that learns of it; at once if it has."""
        self._patience.when_cancelled(function)


class Carried(Patience):
    """A call that is carried out here. What a method is told of it is made when it asks."""

    _told_of: IncomingCall | None = None
    """Not kept longer than the call lasts: each refers to the other."""
    _is_over = False

    def __init__(self, request: Request) -> None:
        super().__init__(time.monotonic() + request.left_s)
        self.request = request

    @property
    def incoming(self) -> IncomingCall:
        """As its method sees it."""
        told_of = self._told_of or IncomingCall(self.request, self)
        if not self._is_over:
            self._told_of = told_of
        return told_of

    def be_over(self) -> bool:
        """The call has ended; whether somebody may have kept `incoming`."""
        told_of, self._told_of, self._is_over = self._told_of, None, True
        return told_of is not None


_telling = threading.Lock()
"""Held for moves only, and seldom: one for all calls, so that a call that nobody cancels needs none of its own."""

current: ContextVar[Carried | None] = ContextVar("current", default=None)


def current_call() -> IncomingCall:
    """The call that is being carried out here.

    Raises:
        ClosedError: none is: to be called from a method, on its thread or task.
    """
    carried = current.get()
    if carried is None:
        raise ClosedError("no remote call is being carried out here")
    return carried.incoming
