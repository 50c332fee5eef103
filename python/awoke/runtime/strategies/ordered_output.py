"""A function with an `ordered` output, where several jobs of a partition run at once.

Results leave in the order of their messages, and no worker waits for an acknowledgement. A job whose function has been
called for all messages leaves its slot to others, and ends when all results are acknowledged.
"""

from __future__ import annotations

from typing import Any

from awoke._native import Job, Message
from awoke.routing import Route
from awoke.runtime.context import OutputContext
from awoke.runtime.handler_calls import HandlerCalls
from awoke.runtime.lent import LentBatches, detach_kept
from awoke.runtime.loops import message_loop
from awoke.runtime.outgoing import End, OrderedOutputs, Outgoing, Results
from awoke.runtime.outputs import answering, called, encodable


class OrderedOutput:
    """Calls the function of a route, and hands over what it returns."""

    def __init__(
        self,
        route: Route,
        calls: HandlerCalls,
        context: OutputContext,
        batches: LentBatches,
        outputs: OrderedOutputs,
        end: End,
    ) -> None:
        self._route, self._context, self._batches, self._outputs, self._end = route, context, batches, outputs, end
        answer = answering(route, context.tracer)
        if context.encoder:
            answer = encodable(answer, route, context.encoder)
        self._function = called(calls, context.tracer, answer)
        self._is_async, self._is_typed = calls.is_async, calls.is_typed

    @message_loop
    async def run(self, job: Job) -> bool:
        """Calls the function for each message of a job; returns false: the job ends with the last acknowledgement.

        Raises what the function raises; the messages before end when their own results are acknowledged.
        """
        function, is_async, is_typed = self._function, self._is_async, self._is_typed
        outgoing = Outgoing(self._end)
        results = self._results(job, outgoing)
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch, lease = self._batches.of(job)
        try:
            for message in () if batch is None else job.each(batch):
                if is_typed:
                    message.value  # noqa: B018
                answer = function(message)
                if is_async:
                    answer = await answer
                results.add(message, answer)
                done = message
        except BaseException:
            assert batch is not None
            batch.detach()
            split_off_done(job, outgoing, results, done, message)
            # A kept exception keeps this frame: not what waits for other messages' results, and their client.
            del outgoing, results
            raise
        batch = message = done = answer = None
        detach_kept(lease)
        results.skip_before(job.rest_offset)
        outgoing.seal(job)
        return False

    def _results(self, job: Job, outgoing: Outgoing) -> Results:
        pairs = zip(job.batch().offsets(), job.ordinals(), strict=True)
        places = {offset: ordinal for offset, ordinal in pairs if ordinal is not None}
        return Results(self._context, self._route, outgoing, self._outputs.of(job), places)


def split_off_done(
    job: Job, outgoing: Outgoing, results: Results, done: Message[Any] | None, failed: Message[Any] | None
) -> None:
    """Splits off the messages before the one that failed: they end when their results are acknowledged."""
    part = None if done is None else job.split_off(done.offset)
    if part is not None:
        results.skip_before(None if failed is None else failed.offset)
        outgoing.seal(part)
