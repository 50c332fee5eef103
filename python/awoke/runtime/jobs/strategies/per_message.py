"""A function without an output: called once for each message."""

from __future__ import annotations

import contextlib
from typing import Any

from awoke._native import Job, Message
from awoke.declare.handlers import check_ran
from awoke.errors import FencedError
from awoke.observe.loops import message_loop
from awoke.observe.tracing import Tracer
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.lent import LentBatches, detach_kept
from awoke.runtime.jobs.outputs import called


class PerMessage:
    """Calls the function of a route."""

    def __init__(self, calls: HandlerCalls, tracer: Tracer | None, batches: LentBatches) -> None:
        self._function = called(calls, tracer)
        self._is_async, self._is_typed, self._name = calls.is_async, calls.is_typed, calls.name
        self._batches = batches

    @message_loop
    async def run(self, job: Job) -> bool:
        """Calls the function for each message of a job; returns true: the job is over.

        Raises what the function raises; the messages before are marked as done then.
        """
        function, is_async, is_typed = self._function, self._is_async, self._is_typed
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch, lease = self._batches.of(job)
        try:
            for message in () if batch is None else job.each(batch, is_done_when_passed=True):
                if is_typed:
                    message.value  # noqa: B018 - a value that does not decode is the message's error, not the handler's
                if (result := function(message)) is not None:
                    if is_async:
                        result = await result
                    if result is not None:
                        check_ran(result, self._name)
                done = message
        except BaseException:
            mark_done(job, done)
            assert batch is not None
            batch.detach()
            raise
        batch = message = done = result = None
        detach_kept(lease)
        return True


def mark_done(job: Job, message: Message[Any] | None) -> None:
    """Stores how far a failed job came. Does not block."""
    if message is not None:
        with contextlib.suppress(FencedError):
            job.done(message.offset)
