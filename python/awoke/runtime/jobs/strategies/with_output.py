"""A function with an output, where one job of a partition runs at a time: the job waits for its acknowledgements."""

from __future__ import annotations

import contextlib
from typing import Any, cast

from awoke._native import Job, Message, Results
from awoke.declare.routing import Route
from awoke.errors import FencedError
from awoke.observe.loops import message_loop
from awoke.produce.producer import Producer, sends_directly
from awoke.runtime.jobs.acknowledgements import Acknowledgements
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.lent import LentBatches, detach_kept
from awoke.runtime.jobs.outputs import NOTHING, Outputs, called, sender
from awoke.runtime.process.context import OutputContext


class WithOutput:
    """Calls the function of a route, and sends what it returns."""

    def __init__(self, route: Route, calls: HandlerCalls, context: OutputContext, batches: LentBatches) -> None:
        self._batches, self._acknowledgements = batches, Acknowledgements(route, context)
        assert route.output is not None
        self._output, self._context = route.output, context
        self._outputs = Outputs(route, context.tracer)
        self._send = sender(route, context, self._outputs.answer)
        # Within its span, where there is one, a message's result is sent, too.
        self._function = called(calls, context.tracer, None if context.tracer is None else self._send)
        self._is_async, self._is_typed = calls.is_async, calls.is_typed

    @message_loop
    async def run(self, job: Job) -> bool:
        """Calls the function for each message of a job; returns whether the job is over.

        Raises what the function raises, or why a result could not be sent or was refused; the messages before are
        done then, or end by themselves.
        """
        function, is_async, is_typed = self._function, self._is_async, self._is_typed
        producer, output, results = cast("Producer", self._context.producer), self._output, Results()
        plain = self._outputs.plain if sends_directly(producer) else NOTHING
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
                    if type(result) in plain:
                        results.send(producer, output, message, result)
                    elif result is not None:
                        self._send_others(results, message, result)
                done = message
        except BaseException:
            assert batch is not None
            batch.detach()
            result = None
            await self._on_failed(job, results, None if done is None else done.offset)
            del results  # A kept exception keeps this frame: not the handles.
            raise
        batch = message = done = result = None  # A kept exception keeps this frame, and the batch with it.
        detach_kept(lease)
        return await self._on_called(job, results)

    def _send_others(self, results: Results, message: Message[Any], result: Any) -> None:
        """Sends what is more than a value, or passes middleware; within a span it was sent before."""
        for each in self._send(message, result) if self._context.tracer is None else result:
            results.keep(*each)

    async def _on_called(self, job: Job, results: Results) -> bool:
        """Waits until all results are acknowledged; returns true: the job is over. Raises the first refusal."""
        await self._acknowledgements.wait(job, results)
        return True

    async def _on_failed(self, job: Job, results: Results, done_offset: int | None) -> None:
        """Waits for the results of the messages before the one that failed, and marks those messages as done."""
        await self._acknowledgements.wait(job, results)
        if done_offset is not None:
            with contextlib.suppress(FencedError):
                job.done(done_offset)
