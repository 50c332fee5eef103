"""An `ordered` output, where several messages of a partition are processed at once.

Results leave in the order of their messages, and no thread waits for them: a job whose handler has returned leaves its
slot to others, keeps its lanes, and ends when all of its results are acknowledged. Results go through a queue of the
engine's for each reading of a partition: the thread that adds the missing result also sends the results behind it.
Acknowledgements are counted in the engine, and a job hears of them once for all that was sent together.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Container, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from awoke._native import DeliveryHandle, HookJob, Job, Message, OrderedQueue, OrderedResults, Results
from awoke.declare.routing import Route
from awoke.errors import FencedError
from awoke.payloads.message import Outgoing
from awoke.produce.middleware import Middleware
from awoke.produce.producer import Producer, sends_directly
from awoke.runtime.jobs.alone import is_refused_in_company
from awoke.runtime.jobs.message_loop import NOTHING, Send, Strategy, unsent
from awoke.runtime.jobs.outputs import Answer, Outputs, Result, produce, records_of
from awoke.runtime.jobs.results import Acknowledgements, End
from awoke.runtime.process.assigned import Key, key_of
from awoke.runtime.process.context import OutputContext
from awoke.waiting.drive import drive_later
from awoke.waiting.handles import call_back

Failed = Sequence[tuple[int, BaseException]]
"""Offsets of messages whose result could not be sent, and why."""


class OrderedOutput(Strategy["OutgoingResults"]):
    """The strategy of a route: hands over what its handler returns. Any thread."""

    takes_nothing = True
    """A message without a result has a turn, too, which is to end."""

    def __init__(self, route: Route, context: OutputContext, queues: OrderedOutputs, end: End) -> None:
        assert route.output is not None
        self._route, self._output, self._context, self._queues, self._end = route, route.output, context, queues, end
        self._outputs, self._encode = Outputs(route, context.tracer), context.topic_formats or None

    def begin(self, job: Job) -> tuple[OutgoingResults, Container[type], Send]:
        """Returns results that wait for their turns. It blocks while the producer's queue is full."""
        results = OrderedResults(self._queues.of(job), job.batch().offsets(), job.ordinals())
        outgoing = OutgoingResults(self._context, self._route, results, self._end)
        if not sends_directly(self._context.producer):
            return outgoing, NOTHING, unsent
        return outgoing, self._outputs.plain, partial(results.send, outgoing)

    def make(self, message: Message[Any], result: Any) -> Answer | None:
        """Makes the records of a result, and raises if one can't be encoded now: see `check_encodable`."""
        answer = self._outputs.answer(message, result)
        if answer is not None and self._encode is not None:
            check_encodable(answer, self._output, self._encode)
        return answer

    def take(self, outgoing: OutgoingResults, message: Message[Any], result: Any) -> None:
        """Adds what is more than a value, passes middleware, or is nothing; within a span it was made before."""
        answer = self.make(message, result) if self._context.tracer is None else result
        if answer:
            outgoing.results.add(outgoing, message.offset, (copy_context(), answer))
        else:
            outgoing.results.skip(message.offset)

    async def on_called(self, outgoing: OutgoingResults, job: Job, done_offset: int | None) -> bool:
        """Returns False: the job ends with its last acknowledgement."""
        if done_offset is not None and job.rest_offset is not None and job.has_several_lanes:
            # What is left may be of before what is done, and could not be processed if the job kept its lanes until
            # its results have left.
            end_done(job, outgoing, done_offset, None)
            job.release_rest()
        else:
            outgoing.seal(job)
        return False

    async def on_failed(
        self, outgoing: OutgoingResults, job: Job, done_offset: int | None, failed_offset: int | None
    ) -> None:
        """The messages before the one that failed end when their own results are acknowledged."""
        end_done(job, outgoing, done_offset, failed_offset)


def end_done(job: Job, outgoing: OutgoingResults, done_offset: int | None, failed_offset: int | None) -> None:
    """Splits off the messages before the one that failed, or was left: they end when their results are
    acknowledged."""
    part = None if done_offset is None else job.split_off(done_offset)
    if part is not None:
        outgoing.seal(part, outgoing.results.place_of(job.first_offset if failed_offset is None else failed_offset))


def check_encodable(answer: Answer, topic: str, encode: Middleware) -> None:
    """Raises if a record can't be encoded now, as for a schema that is not loaded.

    A result that waits for its turn can't wait for a schema, too: results behind it would be sent before.
    """
    for record in records_of(answer):
        encode(record if type(record) is Outgoing else Outgoing(topic, *record))


class OutgoingResults:
    """The answers to the results of one job. Any thread.

    The partition stays assigned as long as the broker owes an answer, and not for a result that waits for its
    turn, which may never come at a revocation. So whenever nothing is under way, the messages of the job are done up to
    the first one whose result waits.
    """

    def __init__(self, context: OutputContext, route: Route, results: OrderedResults, end: End) -> None:
        self._context, self._route, self.results, self._end = context, route, results, end
        self._acknowledgements = Acknowledgements(route, context)
        self._lock = threading.Lock()
        self._under_way = 0
        """Records, and groups of records that were sent together, without an answer."""
        self._job: Job | None = None
        self._refused: dict[int, BaseException] = {}
        """Why results were refused, by the offsets of their messages."""

    # The engine calls these three, on the thread that sends: a worker's, or the event loop's.

    def sending(self) -> None:
        """Notes that results of the sealed job are sent now; `sent` follows. Does not block."""
        with self._lock:
            self._begin(1)

    def sent(self, results: Results, failed: Failed) -> None:
        """Takes what was sent together, and why other results could not be sent. Does not block."""
        with self._lock:
            self._refused.update(failed)
        self._expect(results)

    def send(self, offset: int, kept: tuple[Context, Answer]) -> None:
        """Produces the records of a message one by one, in its context: the thread may be one of another message.

        Blocks while the producer's queue is full.
        """
        context, answer = kept
        records = records_of(answer)
        with self._lock:
            self._begin(len(records))
        for place, record in enumerate(records):
            try:
                handle = context.run(produce, self._context.producer, self._route, record)
            except BaseException as error:  # Of middleware, or a format.
                self._answered(len(records) - place, [(offset, error)])  # None of those behind it is sent.
                return
            call_back(handle, partial(self._acknowledged, offset, record))

    def seal(self, job: Job, place: int | None = None) -> None:
        """Ends the adding: the job leaves its slot, and ends with the last answer. Does not block.

        Messages without a result before this place of the job (None: its end) give their turns to later ones.
        """
        with self._lock:
            results, failed, is_sending = self.results.seal()
            self._refused.update(failed)
            has_results = len(results) > 0
            self._under_way += has_results + is_sending
            job.leave_slot(self._under_way > 0, self.results.others_s)
            self._job, end = job, job.remaining if place is None else place
            is_over = self._advance(job)
        self.results.skip_before(end)
        if has_results:
            self._expect(results)
        if is_over:
            self._finish(job)

    def _expect(self, results: Results) -> None:
        if len(results) > 0:
            call_back(results, self._on_answered)
        else:
            self._answered(1, [])

    def _on_answered(self, results: Results) -> None:
        if results.result():
            self._answered(1, [])
        else:
            drive_later(self._check(results))

    async def _check(self, results: Results) -> None:
        self._answered(1, await self._acknowledgements.refused(results))

    def _acknowledged(self, offset: int, record: Result, handle: DeliveryHandle) -> None:
        error = handle.exception()
        if error is not None and is_refused_in_company(error):
            try:
                again = produce(self._context.alone, self._route, record)
            except BaseException as refused:
                error = refused
            else:
                call_back(again, lambda again: self._on_last_answer(offset, again))
                return
        self._answered(1, [] if error is None else [(offset, error)])

    def _on_last_answer(self, offset: int, handle: DeliveryHandle) -> None:
        error = handle.exception()
        self._answered(1, [] if error is None else [(offset, error)])

    def _answered(self, count: int, refused: Failed) -> None:
        with self._lock:
            self._under_way -= count
            self._refused.update(refused)
            job = self._job
            is_over = job is not None and self._advance(job)
        if is_over:
            assert job is not None
            self._finish(job)

    def _begin(self, count: int) -> None:
        """Counts what is sent now. Under the lock."""
        self._under_way += count
        if self._job is not None:
            self._job.keep_assigned()

    def _advance(self, job: Job) -> bool:
        """Stores how far the job is done, if nothing is under way; returns whether all is answered. Under the lock."""
        if self._under_way > 0:
            return False
        is_over = not self.results.are_waiting
        offset = self.results.first_open(list(self._refused))
        if offset is not None:
            with contextlib.suppress(FencedError):
                job.done_before(offset)
        if not is_over:
            job.allow_revoke()
        return is_over

    def _finish(self, job: Job) -> None:
        """Ends the job: each refused message fails with its lane, and the lanes around it are done."""
        refused, self._refused = self._refused, {}
        rest: Job | None = job
        while rest is not None:
            part, rest = rest, None
            offset = self.results.first_open(list(refused))
            if offset is None:
                self._end(part, None)
                return
            with contextlib.suppress(FencedError):
                part.done_before(offset)
            rest = part.split_lanes_behind(offset)
            self._end(part, refused.pop(offset))
            if rest is not None:
                behind = self.results.place_of(rest.first_offset)
                refused = {each: why for each, why in refused.items() if self.results.place_of(each) >= behind}


class OrderedOutputs:
    """The ordered outputs of one route: one for each assignment, and for each reading of it. Any thread."""

    def __init__(self, context: OutputContext, route: Route) -> None:
        self._context, self._route = context, route
        self._lock = threading.Lock()
        """Guards `_queues`: several jobs of a partition may ask for one at once."""
        self._queues: dict[tuple[Key, int], OrderedQueue] = {}

    def of(self, job: Job) -> OrderedQueue:
        """Returns the queue that a job belongs to, made on first use. Does not block."""
        key = (key_of(job), job.epoch)
        with self._lock:
            if key not in self._queues:
                self._queues[key] = self._make()
            return self._queues[key]

    def _make(self) -> OrderedQueue:
        assert self._route.output is not None
        producer = self._context.producer
        direct = producer if isinstance(producer, Producer) and sends_directly(producer) else None
        return OrderedQueue(direct, self._route.output)

    def skip_first(self, job: Job) -> None:
        """Skips the job's first message, which will have no result: the results behind it wait for it no longer."""
        if self._route.is_ordered and job.is_of_lanes:
            for ordinal in job.ordinals()[:1]:
                self.of(job).skip(ordinal)

    def forget(self, hook: HookJob) -> None:
        """Drops the queues of an assignment that has ended; the next owner of the partition processes the messages of
        the results that wait in them again."""
        key = key_of(hook)
        with self._lock:
            queues = [self._queues.pop(each) for each in list(self._queues) if each[0] == key]
        for queue in queues:
            queue.close()
