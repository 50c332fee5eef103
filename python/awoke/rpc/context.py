"""The call that a method is carrying out: who calls, how long it may take, and whether anybody still waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from awoke._native import Message
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


class IncomingCall:
    """The call that a method is carrying out. Any thread may look at it."""

    def __init__(
        self,
        method: str,
        call_id: bytes,
        caller: str,
        idempotency_key: bytes | None,
        message: Message[Any],
        until_s: float,
    ) -> None:
        self.method = method
        self.id = call_id
        """What its caller has named it."""
        self.caller = caller
        """Who calls, by its own word; see `docs/rpc.md` for signed calls."""
        self.idempotency_key = idempotency_key
        """The same for all attempts at one call; None where its caller gave none."""
        self._message = message
        self.until_s = until_s
        """When its caller stops waiting, on `time.monotonic()`."""
        self.contribution: Sender | None = None
        """Of an exactly-once service: what is sent through it is seen together with the reply, or not at all."""
        self.was_given_up = False
        """Whether its caller has cancelled it."""
        self._told: list[Callable[[], object]] = []
        """Who is to be told when it is."""

    @property
    def key(self) -> bytes | None:
        """Calls with one key are carried out in order."""
        return self._message.key

    @property
    def headers(self) -> Mapping[str, bytes | None]:
        """All headers; of several with one name the last."""
        return dict(self._message.headers)

    @property
    def remaining_s(self) -> float:
        """How long its caller still waits; 0 when it does no more."""
        return max(0.0, self.until_s - time.monotonic())

    @property
    def is_cancelled(self) -> bool:
        """Whether its caller waits no more: it has cancelled the call, or the deadline has passed."""
        return self.was_given_up or time.monotonic() >= self.until_s

    def wait_cancelled(self, timeout_s: float | None = None) -> bool:
        """Wait until its caller waits no more, at most so long; whether it does not. Blocks."""
        left_s = self.remaining_s if timeout_s is None else min(timeout_s, self.remaining_s)
        cancelled = threading.Event()
        self.when_cancelled(cancelled.set)
        try:
            cancelled.wait(left_s)
        finally:
            with _telling:
                if cancelled.set in self._told:
                    self._told.remove(cancelled.set)
        return self.is_cancelled

    def cancel(self) -> None:
        """What the runtime does when the caller cancels."""
        with _telling:
            self.was_given_up = True
            told, self._told = self._told, []
        for each in told:
            each()

    def when_cancelled(self, function: Callable[[], object]) -> None:
        """Call a function when the caller cancels, on the thread that learns of it; at once if it has."""
        with _telling:
            if not self.was_given_up:
                self._told.append(function)
                return
        function()


_telling = threading.Lock()
"""Held for moves only, and seldom: one for all calls, so that a call that nobody cancels needs none of its own."""

current: ContextVar[IncomingCall | None] = ContextVar("current", default=None)


def current_call() -> IncomingCall:
    """The call that is being carried out here.

    Raises:
        ClosedError: none is: to be called from a method, on its thread or task.
    """
    call = current.get()
    if call is None:
        raise ClosedError("no remote call is being carried out here")
    return call
