"""Results on their way to an `ordered` output, where several messages of a partition are processed at once.

No thread waits for them: a job whose function has returned leaves its slot to others, keeps its lanes, and ends
when all of its results are acknowledged. Results go through a sequencer: the thread that adds the missing result also
sends the results behind it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from awoke._native import DeliveryHandle, HookJob, Job, Message, Sequencer
from awoke._waiting import call_back
from awoke.errors import ClosedError, FencedError
from awoke.message import addressed
from awoke.routing import Route
from awoke.runtime.alone import is_refused_in_company
from awoke.runtime.context import OutputContext, Producing
from awoke.runtime.instances import Key, key_of
from awoke.runtime.outputs import Answer, Result, records_of

End = Callable[[Job, BaseException | None], object]
"""Called when all results of a job are answered; with the error of a refused one, whose message is then the job's
first."""


class Outgoing:
    """The results of one job. Its worker adds to it and seals it; any thread may answer.

    The partition stays assigned as long as the broker owes an answer, and not for a result that waits for its
    turn, which may never come at a revocation. So a message is done when it and those before it in the job are
    answered.
    """

    def __init__(self, end: End) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._open: deque[int] = deque()
        """Offsets without an answer, and those behind them, in order."""
        self._owed: dict[int, int] = {}
        """The number of records without an answer, for messages with several."""
        self._answered_early: set[int] = set()
        self._done: int | None = None
        """The last offset up to which all are answered."""
        self._under_way = 0
        self._job: Job | None = None
        self._refused: tuple[int, BaseException] | None = None

    def add(self, offset: int) -> None:
        """Adds a message, whose result comes later. Does not block."""
        with self._lock:
            self._open.append(offset)

    def send(self, context: OutputContext, route: Route, offset: int, answer: Answer) -> None:
        """Produces the records of a message that was added. Blocks while the producer's queue is full."""
        records = records_of(answer)
        count = len(records)
        with self._lock:
            self._under_way += count
            if count > 1:
                self._owed[offset] = count
            if self._job is not None:
                self._job.keep_assigned()
        for place, record in enumerate(records):
            try:
                handle = produce(context.producer, route, record)
            except Exception as error:
                self._answered(offset, error, count - place)  # None of those behind it is sent.
                return
            call_back(handle, partial(self._acknowledged, context, route, offset, record))

    def complete_without_result(self, offset: int) -> None:
        """Completes a message that was added and has no result. Does not block."""
        self._answered(offset, None, 0)

    def seal(self, job: Job) -> None:
        """Ends the adding: the job leaves its slot, and ends with the last answer. Does not block."""
        with self._lock:
            job.leave_slot(self._under_way > 0)
            self._job = job
            is_over = self._advance(job)
        if is_over:
            self._finish(job)

    def _acknowledged(
        self, context: OutputContext, route: Route, offset: int, record: Result, handle: DeliveryHandle
    ) -> None:
        error = handle.exception()
        if error is None or not is_refused_in_company(error):
            self._answered(offset, error, 1)
            return
        try:
            again = produce(context.alone, route, record)
        except Exception as refused:
            self._answered(offset, refused, 1)
        else:
            call_back(again, lambda again: self._answered(offset, again.exception(), 1))

    def _answered(self, offset: int, error: BaseException | None, under_way: int) -> None:
        with self._lock:
            self._under_way -= under_way
            if self._pay(offset, under_way):
                self._answered_early.add(offset)
            if error is not None and (self._refused is None or offset < self._refused[0]):
                self._refused = (offset, error)
            job = self._job
            is_over = job is not None and self._advance(job)
        if is_over:
            assert job is not None
            self._finish(job)

    def _pay(self, offset: int, records: int) -> bool:
        """Counts answers; returns whether all records of the message are answered. Under the lock."""
        owed = self._owed.pop(offset, records) - records
        if owed:
            self._owed[offset] = owed
        return not owed

    def _advance(self, job: Job) -> bool:
        """Stores how far the job is done; returns whether all is answered. Under the lock."""
        before = self._done
        while self._open and self._open[0] in self._answered_early:
            offset = self._open.popleft()
            self._answered_early.discard(offset)
            if self._refused is None or offset < self._refused[0]:
                self._done = offset
        if self._done is not None and self._done != before:
            with contextlib.suppress(FencedError):
                job.done(self._done)
        if self._under_way == 0 and self._open:
            job.allow_revoke()
        return not self._open

    def _finish(self, job: Job) -> None:
        self._end(job, None if self._refused is None else self._refused[1])


class _Entry(NamedTuple):
    outgoing: Outgoing
    offset: int
    answer: Answer


class OrderedOutput:
    """The results of one assignment of a partition, in the order of its messages. Any thread."""

    def __init__(self, context: OutputContext, route: Route) -> None:
        # A message whose result waits is not done, so the commit gap bounds the number of waiting results.
        # The sink is no method of this object, to avoid a reference cycle: jobs wait in here, and with them a client.
        self._sequencer: Sequencer[_Entry] = Sequencer(partial(send, context, route), route.concurrency.commit_gap)

    def add(self, ordinal: int, outgoing: Outgoing, offset: int, answer: Answer) -> bool:
        """Adds the result of a message, to be sent behind those of all messages before it.

        Returns False if its turn is over. Does not block.
        """
        try:
            self._sequencer.deposit(ordinal, _Entry(outgoing, offset, answer))
        except ValueError:
            return False  # It was sent before, and refused.
        except ClosedError:
            pass  # The partition was given back: its next owner processes the message again.
        return True

    def skip(self, ordinals: Sequence[int | None]) -> None:
        """Skips the places of messages without a result. Does not block."""
        for ordinal in ordinals:
            if ordinal is not None:
                with contextlib.suppress(ValueError, ClosedError):
                    self._sequencer.void(ordinal)

    def close(self) -> None:
        """Drops the waiting results; the next owner of the partition processes their messages again."""
        self._sequencer.close()


class OrderedOutputs:
    """The ordered outputs of one route: one for each assignment, and for each reading of it. Any thread."""

    def __init__(self, context: OutputContext, route: Route) -> None:
        self._context, self._route = context, route
        self._lock = threading.Lock()
        """Guards `_outputs`: several jobs of a partition may ask for one at once."""
        self._outputs: dict[tuple[Key, int], OrderedOutput] = {}

    def of(self, job: Job) -> OrderedOutput:
        """Returns the output that a job belongs to, made on first use. Does not block."""
        key = (key_of(job), job.epoch)
        with self._lock:
            if key not in self._outputs:
                self._outputs[key] = OrderedOutput(self._context, self._route)
            return self._outputs[key]

    def skip_first(self, job: Job) -> None:
        """Skips the job's first message, which will have no result: the results behind it wait for it no longer."""
        if self._route.is_ordered and job.is_of_lanes:
            self.of(job).skip(job.ordinals()[:1])

    def forget(self, hook: HookJob) -> None:
        """Drops the outputs of an assignment that has ended."""
        key = key_of(hook)
        with self._lock:
            outputs = [self._outputs.pop(each) for each in list(self._outputs) if each[0] == key]
        for output in outputs:
            output.close()


def send(context: OutputContext, route: Route, run: list[_Entry]) -> None:
    """Sends results whose turn it is."""
    for entry in run:
        entry.outgoing.send(context, route, entry.offset, entry.answer)


class Results:
    """The results of one job, which are sent in order."""

    def __init__(
        self,
        context: OutputContext,
        route: Route,
        outgoing: Outgoing,
        ordered: OrderedOutput,
        places: dict[int, int],
    ) -> None:
        self._context, self._route = context, route
        self._outgoing, self._ordered, self._places = outgoing, ordered, places

    def add(self, message: Message[Any], answer: Answer | None) -> None:
        """Adds what the function returned for a message."""
        offset = message.offset
        self._outgoing.add(offset)
        place = self._places.pop(offset, None)
        if not answer:
            self._outgoing.complete_without_result(offset)
            self._ordered.skip([place])
            return
        if place is not None and self._ordered.add(place, self._outgoing, offset, answer):
            return
        # Of before a seek, or refused at its turn: this time it is sent at once.
        self._outgoing.send(self._context, self._route, offset, answer)

    def skip_before(self, offset: int | None) -> None:
        """Skips the messages before this offset (None: all) that the function was not called for: they have no
        result."""
        rest = [at for at in self._places if offset is None or at < offset]
        self._ordered.skip([self._places.pop(at) for at in rest])


def produce(producer: Producing, route: Route, result: Result) -> DeliveryHandle:
    """Sends a record to a route's output, or to its own topic."""
    assert route.output is not None
    topic, record = addressed(route.output, result)
    return producer.produce(topic, record.value, **record.options)
