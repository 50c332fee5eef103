"""A call on its way through the responder: what its request says, and what is under way for it."""

from __future__ import annotations

import time
from typing import Any, Protocol

from awoke._native import Batch, DeliveryHandle, Job, Message, PendingCommit
from awoke.rpc.context import IncomingCall, Sender
from awoke.rpc.methods import Method
from awoke.rpc.window import Window

TIMEOUT_DEFAULT_S = 30.0
"""For a request without a deadline, from when it was sent."""


class Contribution(Sender, Protocol):
    """What becomes visible together with an offset."""

    def submit(self, job: Job, offset: int | None) -> PendingCommit: ...


class Request:
    """What a record says of a call.

    Raises:
        ValueError: it makes no sense.
    """

    __slots__ = (
        "budget_s",
        "caller",
        "credit",
        "id",
        "idempotency_key",
        "kind",
        "left_s",
        "method",
        "queued_s",
        "reply_partition",
        "reply_topic",
        "size_bytes",
    )

    def __init__(self, message: Message[Any], size_bytes: int, clock_skew_s: float) -> None:
        (
            self.kind,
            self.id,
            self.method,
            self.caller,
            self.reply_topic,
            self.reply_partition,
            deadline_ms,
            budget_ms,
            self.idempotency_key,
            self.credit,
        ) = message.request_head()
        self.size_bytes = size_bytes
        now_s = time.time()
        if deadline_ms is None or budget_ms is None:
            sent_ms = message.timestamp_ms or int(now_s * 1_000)
            deadline_ms = sent_ms + int(TIMEOUT_DEFAULT_S * 1_000) if deadline_ms is None else deadline_ms
            budget_ms = max(0, deadline_ms - sent_ms) if budget_ms is None else budget_ms
        self.budget_s = budget_ms / 1_000
        self.left_s = deadline_ms / 1_000 + clock_skew_s - now_s
        self.queued_s = max(0.0, self.budget_s - self.left_s)
        """From the call to here, on the callers' clock."""


class Work:
    """A call that is to be carried out."""

    method: Method

    def __init__(self, request: Request, batch: Batch[Any], message: Message[Any], job: Job) -> None:
        self._batch = batch
        self.request = request
        self.message = message
        self.job: Job | None = job
        """None where its offset has been committed before."""
        self.is_known = False
        """Whether the service has its method, and `method` is it."""
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
            request.idempotency_key,
            message,
            time.monotonic() + request.left_s,
        )
        self._caller_until_s = self.call.until_s

    def has_method(self, method: Method) -> None:
        """Say what it calls."""
        self.method = method
        self.is_known, self.is_async, self.is_stream = True, method.is_async, method.is_stream
        if method.is_stream:
            self.window = Window(self.request.credit)
            self.call.when_cancelled(self.window.wake)

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

    def let_go_of_memory(self) -> None:
        """It waits, or is over: whoever keeps it must not keep librdkafka's memory, and with it the client, alive."""
        self._batch.detach()

    @property
    def size_bytes(self) -> int:
        """Of the request."""
        return self.request.size_bytes
