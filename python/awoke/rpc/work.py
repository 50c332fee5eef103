"""A call on its way through the responder: what its request says, and what is under way for it."""

from __future__ import annotations

import time
from typing import Any, Protocol

from awoke._native import DeliveryHandle, Job, Message, PendingCommit
from awoke.rpc import protocol
from awoke.rpc.context import IncomingCall, Sender
from awoke.rpc.errors import InvalidArgument
from awoke.rpc.methods import Method
from awoke.rpc.window import Window

TIMEOUT_DEFAULT_S = 30.0
"""For a request without a deadline, from when it was sent."""


class Contribution(Sender, Protocol):
    """What becomes visible together with an offset."""

    def submit(self, job: Job, offset: int | None) -> PendingCommit: ...


class Request:
    """What a record says of a call."""

    def __init__(self, message: Message[Any], size_bytes: int, clock_skew_s: float) -> None:
        self.headers = headers = dict(message.headers)
        self.kind = text(headers, protocol.KIND) or protocol.CAST
        self.id = headers.get(protocol.ID) or b""
        self.size_bytes = size_bytes
        self.method = text(headers, protocol.METHOD)
        self.caller = text(headers, protocol.CALLER)
        now_s = time.time()
        sent_ms = message.timestamp_ms or now_s * 1_000
        deadline_ms = number(headers, protocol.DEADLINE)
        if deadline_ms is None:
            deadline_ms = int(sent_ms + TIMEOUT_DEFAULT_S * 1_000)
        budget_ms = number(headers, protocol.BUDGET)
        self.budget_s = (deadline_ms - sent_ms if budget_ms is None else budget_ms) / 1_000
        self.left_s = deadline_ms / 1_000 + clock_skew_s - now_s
        self.queued_s = max(0.0, self.budget_s - self.left_s)
        """From the call to here, on the callers' clock."""

    def reply_to(self) -> tuple[str, int] | None:
        """Where replies go; None where nobody wants one.

        Raises:
            InvalidArgument: half of it is missing, or it is no number.
        """
        topic = text(self.headers, protocol.REPLY_TOPIC)
        if not topic:
            return None
        partition = number(self.headers, protocol.REPLY_PARTITION)
        if partition is None or not 0 < len(self.id) <= protocol.ID_BYTES_MAX:
            raise InvalidArgument(f"a call that wants a reply has {protocol.ID} and {protocol.REPLY_PARTITION}")
        return topic, partition

    def credit(self) -> int | None:
        """How many results may be under way."""
        return number(self.headers, protocol.CREDIT)


class Work:
    """A call that is to be carried out."""

    def __init__(self, request: Request, message: Message[Any], job: Job, reply_to: tuple[str, int] | None) -> None:
        self.request = request
        self.message = message
        self.job: Job | None = job
        """None where its offset has been committed before."""
        self.reply_to = reply_to
        """Topic and partition; None where nobody wants a reply."""
        self._method: Method | None = None
        self.is_async = False
        """Whether it runs on the event loop."""
        self.is_stream = False
        """Whether it has several results."""
        self.window: Window | None = None
        """Of a stream: how many may be under way."""
        self.sequence = 0
        self.began_s = 0.0
        """When it began to run, on `time.perf_counter()`."""
        self.ran_s = 0.0
        self.contribution: Contribution | None = None
        """Where replies go that are committed with the offset."""
        self.last: DeliveryHandle | None = None
        """The reply that was sent last."""
        self.result_key: bytes | None = None
        self.call = IncomingCall(
            request.method,
            request.id,
            request.caller,
            message.key,
            request.headers.get(protocol.IDEMPOTENCY),
            request.headers,
            time.monotonic() + request.left_s,
        )
        self._caller_until_s = self.call.until_s

    @property
    def method(self) -> Method:
        """Of a call that is known to have one."""
        assert self._method is not None
        return self._method

    @method.setter
    def method(self, method: Method) -> None:
        self._method, self.is_async, self.is_stream = method, method.is_async, method.is_stream
        if method.is_stream:
            self.window = Window(self.request.credit())
            self.call.when_cancelled(self.window.wake)

    @property
    def is_known(self) -> bool:
        """Whether the service has its method."""
        return self._method is not None

    @property
    def caller_left_s(self) -> float:
        """How long its caller still waits."""
        return self._caller_until_s - time.monotonic()

    def arguments(self) -> dict[str, Any]:
        """Its arguments.

        Raises:
            InvalidArgument: they are not what the method takes.
        """
        return self.method.arguments(self.message.raw_value or b"")

    @property
    def size_bytes(self) -> int:
        """Of the request."""
        return self.request.size_bytes


def text(headers: protocol.Headers, name: str) -> str:
    """A header as text; empty where there is none."""
    return (headers.get(name) or b"").decode(errors="replace")


def number(headers: protocol.Headers, name: str) -> int | None:
    """A header as a number.

    Raises:
        InvalidArgument: it is none.
    """
    value = headers.get(name)
    if not value:
        return None
    if len(value) > 18 or not value.isdigit():
        raise InvalidArgument(f"header {name} is {value[:32]!r}, no number")
    return int(value)
