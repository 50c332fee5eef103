"""The results of a handler on their way to the output of its route.

A job is over when all that it has sent is acknowledged. Where one job of a partition runs at a time, its worker waits
for that. Where several run at once, none waits: a job leaves its slot to others, and keeps its lanes, so that the
results of a lane leave in order.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Container
from functools import partial
from typing import Any, cast

from awoke._native import Job, Message, Results
from awoke.declare.routing import Route
from awoke.errors import DeliveryFailed, FencedError
from awoke.payloads.message import Record
from awoke.produce.producer import Producer, sends_directly
from awoke.runtime.jobs.alone import is_refused_in_company
from awoke.runtime.jobs.message_loop import NOTHING, Send, Strategy, mark_done, unsent
from awoke.runtime.jobs.outputs import Outputs, Sent, produce, records_of
from awoke.runtime.process.context import OutputContext
from awoke.waiting.drive import drive_later, is_driven, is_of_owner, until
from awoke.waiting.handles import call_back

End = Callable[[Job, BaseException | None], object]
"""Called when all results of a job are answered; with the error of a refused one, whose message is then the job's
first."""


class WithOutput(Strategy[Results]):
    """An output where one job of a partition runs at a time: its worker waits for the acknowledgements."""

    def __init__(self, route: Route, context: OutputContext) -> None:
        assert route.output is not None
        self._route, self._output, self._context = route, route.output, context
        self._outputs = Outputs(route, context.tracer)
        self._acknowledgements = Acknowledgements(route, context)

    def begin(self, job: Job) -> tuple[Results, Container[type], Send]:
        """Returns results, to which the engine adds what it sends. It blocks while the producer's queue is full."""
        results, producer = Results(), cast("Producer", self._context.producer)
        if not sends_directly(producer):
            return results, NOTHING, unsent
        return results, self._outputs.plain, partial(results.send, producer, self._output)

    def make(self, message: Message[Any], result: Any) -> list[Sent]:
        """Sends the records of a result. Blocks while the producer's queue is full."""
        producer, route, answer = self._context.producer, self._route, self._outputs.answer(message, result)
        records = () if answer is None else records_of(answer)
        return [(message.offset, produce(producer, route, each), each) for each in records]

    def take(self, results: Results, message: Message[Any], result: Any) -> None:
        """Sends what is more than a value, or passes middleware; within a span it was sent before."""
        for sent in self.make(message, result) if self._context.tracer is None else result:
            results.keep(*sent)

    async def on_called(self, results: Results, job: Job, done_offset: int | None) -> bool:
        """Waits until all results are acknowledged; returns True: the job is over. Raises the first refusal."""
        await self._acknowledgements.wait(job, results)
        return True

    async def on_failed(self, results: Results, job: Job, done_offset: int | None, failed_offset: int | None) -> None:
        """Waits for the results of the messages before the one that failed, and marks those messages as done."""
        await self._acknowledgements.wait(job, results)
        mark_done(job, done_offset)


class LanesOutput(WithOutput):
    """An output where several jobs of a partition run at once: a job ends with its last acknowledgement."""

    def __init__(self, route: Route, context: OutputContext, end: End) -> None:
        super().__init__(route, context)
        self._end = end

    async def on_called(self, results: Results, job: Job, done_offset: int | None) -> bool:
        """Returns False: the job ends with its last acknowledgement."""
        self._end_when_answered(job, results)
        return False

    async def on_failed(self, results: Results, job: Job, done_offset: int | None, failed_offset: int | None) -> None:
        """The messages before the one that failed become a job of their own, which ends with their results."""
        part = None if done_offset is None else job.split_off(done_offset)
        if part is not None:
            self._end_when_answered(part, results)

    def _end_when_answered(self, job: Job, results: Results) -> None:
        """Has a job leave its slot, and end when all results are answered. Does not block."""
        job.leave_slot(len(results) > 0)
        if len(results) > 0:
            call_back(results, partial(self._on_answered, job))
        else:
            self._end(job, None)

    def _on_answered(self, job: Job, results: Results) -> None:
        if results.result():
            self._end(job, None)
        else:
            drive_later(self._check(job, results))

    async def _check(self, job: Job, results: Results) -> None:
        try:
            await self._acknowledgements.check(job, results)
        except BaseException as refused:
            self._end(job, refused)
        else:
            self._end(job, None)


class Acknowledgements:
    """The acknowledgements of one route's results. Any thread."""

    def __init__(self, route: Route, context: OutputContext) -> None:
        self._route, self._context = route, context

    async def wait(self, job: Job, results: Results) -> None:
        """Waits until all results are acknowledged.

        Raises the first refusal, whose message is then the job's first.
        """
        if not (is_driven() and results.wait()):
            await self.check(job, results)

    async def check(self, job: Job, results: Results) -> None:
        """As `wait`, one by one."""
        refused = await self.refused(results, most=1)
        if not refused:
            return
        [(offset, error)] = refused
        del refused
        with contextlib.suppress(FencedError):
            job.done_before(offset)
        try:
            raise error
        finally:
            del error  # A kept exception keeps this frame.

    async def refused(self, results: Results, most: int | None = None) -> list[tuple[int, BaseException]]:
        """Waits for the results one by one; returns the offsets of messages whose results are refused, and why.

        After `most` of them (None: all) it waits for no more.
        """
        is_alone = False
        refused: list[tuple[int, BaseException]] = []
        sent: deque[Sent] = deque(results.take())
        while sent and len(refused) != most:
            each = sent.popleft()
            try:
                is_alone = await self._is_sent_alone(each, is_alone)
            except BaseException as error:  # Of the broker, or of middleware for the record that is sent again.
                if is_of_owner(error):
                    raise
                refused.append((each[0], error))
        # A kept exception keeps this frame: not the handles, and their client.
        sent.clear()
        each = None  # type: ignore[assignment]
        return refused

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
            record = Record(*sent[2]) if type(sent[2]) is tuple else sent[2]
            await until(produce(self._context.alone, self._route, record))
        return is_alone
