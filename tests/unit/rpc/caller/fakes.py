"""Stands for the engine's caller: calls that have their replies, or get them from a test."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from awoke import _native
from awoke.errors import QueueFull
from awoke.payloads.registry.schemas import Schemas
from awoke.rpc import InvalidArgument, ResourceExhausted, Retries, Unavailable
from awoke.rpc.call_options import OutgoingCall, Request
from awoke.rpc.caller.attempts import Attempts, RetryBudget
from awoke.rpc.caller.connection import CallerConnection, Opening
from awoke.rpc.caller.exchange import CallerForms, Part, Planner, ReplyReader
from awoke.rpc.errors import KINDS
from awoke.rpc.protocol import problem_of
from awoke.waiting.drive import drive

FORMS = CallerForms("shop", Schemas.none())

LONG_S = 600.0
"""A back-off that a test ends early."""

RESULT: Part = ("reply", b"1", None)
END: Part = ("end", b"", None)
BUSY: Part = ("error", problem_of(ResourceExhausted("busy"), is_rejected=True), None)
BROKEN: Part = ("error", problem_of(Unavailable("broken")), None)
WRONG: Part = ("error", problem_of(InvalidArgument("wrong")), None)
LATE: Part = ("failed", "deadline_exceeded", "")

AT_ONCE = Retries(attempts=3, backoff_s=(0.0, 0.0))

Run = Callable[[Coroutine[Any, Any, Any]], Any]
WAYS = pytest.mark.parametrize("run", [drive, asyncio.run], ids=["blocking", "loop"])


def item(number: int) -> Part:
    """Returns one result of a stream."""
    return ("item", b"%d" % number, None)


class FakeCall:
    """A call of the engine's; its parts are there, or are added. Without one, a wait times out at once."""

    id, woken_at_ns = b"an id", 7

    def __init__(self, *parts: Part) -> None:
        self._parts = deque(parts)
        self._waiting: list[tuple[Any, int]] = []
        self.is_cancelled = False

    def add(self, part: Part) -> None:
        self._parts.append(part)
        waiting, self._waiting = self._waiting, []
        for mailbox, token in waiting:
            mailbox.post(token)

    def done(self) -> bool:
        return bool(self._parts)

    def wait(self, timeout_s: float | None = None) -> bool:
        return self.done()

    def result(self) -> Part | None:
        return self._parts.popleft() if self._parts else None

    def has_ended(self) -> bool:
        return not self._parts

    def cancel(self) -> bool:
        self.is_cancelled, was_cancelled = True, self.is_cancelled
        return not was_cancelled

    def notify(self, mailbox: Any, token: int) -> bool:
        if self._parts:
            return False
        self._waiting.append((mailbox, token))
        return True


def parts_of(request: Request) -> tuple[str, bytes, dict[str, Any]]:
    """Returns the method and the body of a request, and its other parts by name."""
    method, body, *more = request
    return method, body, dict(zip(("left_s", "key", "idempotency_key", "headers"), more, strict=True))


class FakeCaller:
    """The engine's caller: gives these parts, one or a list for each attempt, and notes what it is asked."""

    def __init__(self, *attempts: Part | list[Part]) -> None:
        self._attempts = [each if isinstance(each, list) else [each] for each in attempts]
        self.is_full = False
        self.asked: list[tuple[str, bytes, dict[str, Any]]] = []
        self.calls: list[FakeCall] = []
        self.closed: list[float] = []

    def ask(self, request: Request) -> Part:
        method, body, options = parts_of(request)
        return self._next(method, body, options)[0]

    def call(self, request: Request, replies: int = 1, window: int | None = None, may_wait: bool = True) -> FakeCall:
        method, body, options = parts_of(request)
        more = {"replies": replies, "window": window, "may_wait": may_wait}
        self.calls.append(FakeCall(*self._next(method, body, {**options, **more})))
        return self.calls[-1]

    def cast(self, request: Request) -> str:
        self.asked.append(parts_of(request))
        return "delivery"

    def close(self, timeout_s: float) -> None:
        self.closed.append(timeout_s)

    def left(self) -> int:
        return len(self._attempts)

    def open_calls(self) -> int:
        return 2

    def counters(self) -> dict[str, int]:
        return {"begun": len(self.asked)}

    def replies_at(self) -> tuple[str, int]:
        return "shop.rpc.replies", 3

    def _next(self, method: str, body: bytes, options: dict[str, Any]) -> list[Part]:
        if self.is_full:
            raise QueueFull("full", 0.1)
        self.asked.append((method, body, options))
        return self._attempts.pop(0)


class FakeSource:
    """The events of a caller."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class FakeOpening:
    """Opens a fake."""

    def __init__(self, native: FakeCaller) -> None:
        self._native = native

    def open(self) -> tuple[_native.Caller, FakeSource]:
        return cast(_native.Caller, self._native), FakeSource()


def connection_of(native: FakeCaller) -> CallerConnection:
    return CallerConnection(cast(Opening, FakeOpening(native)))


def attempts_of(native: FakeCaller, retries: Retries, connection: CallerConnection | None = None) -> Attempts:
    reader = ReplyReader("shop", KINDS, FORMS)
    return Attempts(connection or connection_of(native), reader, RetryBudget(retries), 4)


def planned(timeout_s: float = 2 * LONG_S, **options: Any) -> OutgoingCall:
    planner = Planner(timeout_s, frozenset(), True, None, FORMS)
    return planner.plan(OutgoingCall(method="quote", **options), (), {})
