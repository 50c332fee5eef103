"""A function with an output, where one job of a partition runs at a time: the job waits for its acknowledgements."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

from awoke import _native
from awoke._native import Job, Message
from awoke.drive import is_driven, until
from awoke.errors import AwokeError, DeliveryFailed, FencedError
from awoke.message import Record
from awoke.routing import Route
from awoke.runtime.alone import is_refused_in_company
from awoke.runtime.context import OutputContext
from awoke.runtime.lent import LentBatches, detach_kept
from awoke.runtime.loops import message_loop
from awoke.runtime.outgoing import produce
from awoke.runtime.outputs import Sent, called, sender
from awoke.runtime.strategies.per_message import mark_done


class WithOutput:
    """Calls the function of a route, and sends what it returns."""

    def __init__(self, route: Route, context: OutputContext, batches: LentBatches) -> None:
        self._route, self._context, self._batches = route, context, batches
        self._function = called(route, context.tracer, sender(route, context))
        self._is_async, self._is_typed = route.is_async, route.decoder is not None

    @message_loop
    async def run(self, job: Job) -> bool:
        """Calls the function for each message of a job, and waits until all results are acknowledged.

        Returns true: the job is over. Raises what the function raises, or the first refusal of a result; the
        messages before are marked as done then.
        """
        function, is_async, is_typed = self._function, self._is_async, self._is_typed
        sent: deque[Sent] = deque()
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch, lease = self._batches.of(job)
        try:
            for message in () if batch is None else job.each(batch):
                if is_typed:
                    message.value  # noqa: B018
                if (result := function(message)) is not None:
                    if is_async:
                        result = await result
                    if type(result) is list:
                        sent.extend(result)
                    elif result is not None:
                        sent.append(result)
                done = message
        except BaseException:
            assert batch is not None
            batch.detach()
            result = None
            await self._check_delivered(job, sent)
            mark_done(job, done)
            raise
        batch = message = done = result = None  # A kept exception keeps this frame, and the batch with it.
        detach_kept(lease)
        await self._check_delivered(job, sent)
        return True

    async def _check_delivered(self, job: Job, sent: deque[Sent]) -> None:
        """Waits until everything sent is acknowledged, and forgets it.

        Raises the first refusal, whose message is then the job's first.
        """
        if is_driven() and are_delivered(sent):
            sent.clear()
            return
        is_alone = False
        while sent:
            each = sent.popleft()
            try:
                is_alone = await self._is_sent_alone(each, is_alone)
            except AwokeError:
                leave_refused(job, each[0], sent)
                del each
                raise

    async def _is_sent_alone(self, sent: Sent, is_alone: bool) -> bool:
        """Waits for one result, which is sent again by itself where others may be why it was refused; returns whether.

        With `is_alone` one before it was: this one follows it, so that the last result of a key stays the last.
        """
        try:
            await until(sent[1])
        except DeliveryFailed as refused:
            if not is_refused_in_company(refused):
                raise
            is_alone = True
        if is_alone:
            await until(produce(self._context.alone, self._route, Record(*sent[2:])))
        return is_alone


def are_delivered(sent: deque[Sent]) -> bool:
    """Waits for all answers with one wake-up of this thread; returns whether every result was taken. Blocks."""
    handles = [each[1] for each in sent]
    _native.wait_all(handles)
    return _native.first_undelivered(handles) is None


def leave_refused(job: Job, offset: int, sent: deque[Sent]) -> None:
    """Marks the messages before this offset, whose result was refused, as done.

    A kept exception keeps these frames alive: clearing the queue frees the handles and their client.
    """
    sent.clear()
    with contextlib.suppress(FencedError):
        job.done(offset - 1)
