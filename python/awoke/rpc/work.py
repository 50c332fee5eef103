"""A call on its way through the responder, and what is under way for it."""

from __future__ import annotations

import time
from typing import Any, Protocol

from awoke._native import DeliveryHandle, Job, PendingCommit, Request
from awoke.rpc.context import Carried, Sender
from awoke.rpc.methods import Method
from awoke.rpc.window import Window


class Contribution(Sender, Protocol):
    """What becomes visible together with an offset."""

    def submit(self, job: Job, offset: int | None) -> PendingCommit: ...


class Work(Carried):
    """A call that is to be carried out. What most calls never change stands in the class."""

    method: Method
    contribution: Contribution | None = None
    is_known = False
    """Whether the service has its method, and `method` is it."""
    is_async = False
    """Whether it runs on the event loop."""
    is_stream = False
    """Whether it has several results."""
    has_waited = False
    """Whether it stood in line."""
    window: Window | None = None
    """Of a stream: how many may be under way."""
    sequence = 0
    began_s = 0.0
    """When it began to run, on `time.perf_counter()`."""
    ran_s = 0.0
    last: DeliveryHandle | None = None
    """The reply that was sent last."""
    result_key: bytes | None = None

    def __init__(self, request: Request, job: Job) -> None:
        super().__init__(request)
        self.job: Job | None = job
        """None where its offset has been committed before."""
        self._caller_until_s = self.until_s

    def has_method(self, method: Method) -> None:
        """Say what it calls."""
        self.method, self.is_known, self.is_async = method, True, method.is_async
        if method.is_stream:
            self.is_stream = True
            self.window = Window(self.request.credit)
            self.when_cancelled(self.window.wake)

    @property
    def caller_left_s(self) -> float:
        """How long its caller still waits."""
        return self._caller_until_s - time.monotonic()

    def arguments(self) -> dict[str, Any]:
        """Its arguments.

        Raises:
            InvalidArgument: they are not what the method takes.
        """
        return self.method.arguments(self.request.body)

    def step_aside(self, is_running: bool) -> None:
        """It waits, or goes on elsewhere: it must not keep librdkafka's memory, and with it the client, alive."""
        job = self.job  # Whoever carries it out by now may say that it has none any more.
        if job is not None:
            job.step_aside(is_running)
        self.request.let_go(is_kept=True)

    def end(self) -> None:
        """It is over; what somebody may look at later is kept."""
        self.request.let_go(is_kept=self.be_over())

    @property
    def size_bytes(self) -> int:
        """Of the request."""
        return self.request.size_bytes
