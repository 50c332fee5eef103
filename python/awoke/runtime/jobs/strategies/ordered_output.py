"""A function with an `ordered` output, where several jobs of a partition run at once.

Results leave in the order of their messages, and no worker waits for an acknowledgement. A job whose function has been
called for all messages leaves its slot to others, and ends when all results are acknowledged.
"""

from __future__ import annotations

from typing import Any

from awoke._native import Job, Message, OrderedResults
from awoke.declare.routing import Route
from awoke.observe.loops import message_loop
from awoke.produce.producer import sends_directly
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.lent import LentBatches, detach_kept
from awoke.runtime.jobs.outgoing import End, OrderedOutputs, Outgoing
from awoke.runtime.jobs.outputs import NOTHING, Outputs, called, encodable
from awoke.runtime.process.context import OutputContext


class OrderedOutput:
    """Calls the function of a route, and hands over what it returns."""

    def __init__(
        self,
        route: Route,
        calls: HandlerCalls,
        context: OutputContext,
        batches: LentBatches,
        queues: OrderedOutputs,
        end: End,
    ) -> None:
        self._route, self._context, self._batches, self._queues, self._end = route, context, batches, queues, end
        self._outputs = Outputs(route, context.tracer)
        answer = self._outputs.answer
        self._answer = encodable(answer, route, context.topic_formats) if context.topic_formats else answer
        # Within its span, where there is one, a message's result is made into records, too.
        self._function = called(calls, context.tracer, None if context.tracer is None else self._answer)
        self._is_async, self._is_typed = calls.is_async, calls.is_typed

    @message_loop
    async def run(self, job: Job) -> bool:
        """Calls the function for each message of a job; returns false: the job ends with the last acknowledgement.

        Raises what the function raises; the messages before end when their own results are acknowledged.
        """
        function, is_async, is_typed = self._function, self._is_async, self._is_typed
        plain = self._outputs.plain if sends_directly(self._context.producer) else NOTHING
        results = OrderedResults(self._queues.of(job), job.batch().offsets(), job.ordinals())
        outgoing = Outgoing(self._context, self._route, results, self._end)
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch, lease = self._batches.of(job)
        try:
            for message in () if batch is None else job.each(batch):
                if is_typed:
                    message.value  # noqa: B018
                result = function(message)
                if is_async:
                    result = await result
                if type(result) in plain:
                    results.send(outgoing, message, result)
                else:
                    self._add(results, outgoing, message, result)
                done = message
        except BaseException:
            assert batch is not None
            batch.detach()
            result = None
            failed_offset = None if message is None else message.offset
            end_done(job, outgoing, results, None if done is None else done.offset, failed_offset)
            # A kept exception keeps this frame: not what waits for other messages' results, and their client.
            del outgoing, results
            raise
        done_offset = None if done is None else done.offset
        batch = message = done = result = None
        detach_kept(lease)
        if done_offset is not None and job.rest_offset is not None and job.has_several_lanes:
            # What is left may be of before what is done, and could not be processed if the job kept its lanes until
            # its results have left.
            end_done(job, outgoing, results, done_offset, None)
            job.release_rest()
        else:
            outgoing.seal(job)
        return False

    def _add(self, results: OrderedResults, outgoing: Outgoing, message: Message[Any], result: Any) -> None:
        """Adds what is more than a value, passes middleware, or is nothing; within a span it was made before."""
        answer = self._answer(message, result) if self._context.tracer is None else result
        if answer:
            results.add(outgoing, message.offset, answer)
        else:
            results.skip(message.offset)


def end_done(
    job: Job, outgoing: Outgoing, results: OrderedResults, done_offset: int | None, failed_offset: int | None
) -> None:
    """Splits off the messages before the one that failed, or was left: they end when their results are
    acknowledged."""
    part = None if done_offset is None else job.split_off(done_offset)
    if part is not None:
        outgoing.seal(part, results.place_of(job.first_offset if failed_offset is None else failed_offset))
