"""What functions returned, on its way to their route's output, where several messages of a partition are worked on at once.

Nobody waits for it: a job whose function is through leaves its slot to others, keeps its lanes, and ends when all of it is
acknowledged. Where the route is `ordered`, results go through a sequencer: whoever brings the one that is missing sends all
that are in order behind it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from awoke import _native
from awoke._native import DeliveryHandle, Job, Message, Sequencer
from awoke._waiting import call_back
from awoke.errors import AwokeError, ClosedError, DeliveryFailed, FencedError
from awoke.message import Record
from awoke.producer import Producer
from awoke.runtime.alone import AloneProducer, is_refused_in_company
from awoke.runtime.outputs import Answer, Sent, records_of

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import AppRunner


End = Callable[[Job, BaseException | None], object]
"""Called when all results of a job are answered: with the error of one that was refused, whose message is the job's first."""


class Outgoing:
    """The results of one job. Its worker adds to it and seals it; any thread may answer.

    The partition is held as long as the broker owes an answer, and not for a result that waits for its turn, which at a
    revocation may never come. So each message is done when it and those before it in the job are answered.
    """

    def __init__(self, end: End) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._open: deque[int] = deque()
        """Offsets without an answer, and those behind them, in order."""
        self._owed: dict[int, int] = {}
        """How many records of a message are not answered, for messages with several."""
        self._answered_early: set[int] = set()
        self._done: int | None = None
        """The last offset up to which all are answered."""
        self._under_way = 0
        self._job: Job | None = None
        self._refused: tuple[int, BaseException] | None = None

    def add(self, offset: int) -> None:
        """There is one message more."""
        with self._lock:
            self._open.append(offset)

    def send(self, server: AppRunner, route: Route, offset: int, answer: Answer) -> None:
        """Produce the records of a message that was added. Blocks while the producer's queue is full."""
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
                handle = produce(server.app.producer, route, record)
            except Exception as error:
                self._answered(offset, error, count - place)  # None of those behind it is sent.
                return
            call_back(handle, partial(self._acknowledged, server, route, offset, record))

    def pass_over(self, offset: int) -> None:
        """A message that was added has no result."""
        self._answered(offset, None, 0)

    def seal(self, job: Job) -> None:
        """No more will be added: the job, which has done what it was for, leaves its slot and ends with the last answer."""
        with self._lock:
            job.leave_slot(self._under_way > 0)
            self._job = job
            is_over = self._advance(job)
        if is_over:
            self._finish(job)

    def _acknowledged(
        self, server: AppRunner, route: Route, offset: int, record: Record, handle: DeliveryHandle
    ) -> None:
        error = handle.exception()
        if error is None or not is_refused_in_company(error):
            self._answered(offset, error, 1)
            return
        try:
            again = produce(server.alone, route, record)
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
        """Takes note of answers; whether all records of the message are answered. Under the lock."""
        owed = self._owed.pop(offset, records) - records
        if owed:
            self._owed[offset] = owed
        return not owed

    def _advance(self, job: Job) -> bool:
        """Say what is done; whether all is answered. Under the lock."""
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

    def __init__(self, server: AppRunner, route: Route) -> None:
        # A message whose result waits is not done: so many of them may be open that one for each has room.
        # The sink is not this object's, so that nothing keeps itself alive: jobs wait in here, and with them a client.
        self._sequencer: Sequencer[_Entry] = Sequencer(partial(send, server, route), route.concurrency.commit_gap)

    def add(self, ordinal: int, outgoing: Outgoing, offset: int, answer: Answer) -> bool:
        """Bring the result of a message, which is sent when those of all before it have been; False when its turn is over."""
        try:
            self._sequencer.deposit(ordinal, _Entry(outgoing, offset, answer))
        except ValueError:
            return False  # It was sent, and refused.
        except ClosedError:
            pass  # The partition was given back: whoever has it does the message again.
        return True

    def pass_over(self, ordinals: Sequence[int | None]) -> None:
        """These messages have no result, or none any more."""
        for ordinal in ordinals:
            if ordinal is not None:
                with contextlib.suppress(ValueError, ClosedError):
                    self._sequencer.void(ordinal)

    def close(self) -> None:
        """What waits for a message that will not come is dropped; whoever has the partition next does it again."""
        self._sequencer.close()


def send(server: AppRunner, route: Route, run: list[_Entry]) -> None:
    """Send results whose turn it is."""
    for entry in run:
        entry.outgoing.send(server, route, entry.offset, entry.answer)


class Results:
    """Where one job's results go: at once, or in order."""

    def __init__(
        self, server: AppRunner, route: Route, outgoing: Outgoing, ordered: OrderedOutput | None, places: dict[int, int]
    ) -> None:
        self._server, self._route = server, route
        self._outgoing, self._ordered, self._places = outgoing, ordered, places

    def add(self, message: Message[Any], answer: Answer | None) -> None:
        """What the function returned for a message."""
        offset = message.offset
        self._outgoing.add(offset)
        place = None if self._ordered is None else self._places.pop(offset, None)
        if not answer:
            self._outgoing.pass_over(offset)
            if self._ordered is not None and place is not None:
                self._ordered.pass_over([place])
            return
        ordered = None if place is None else self._ordered
        if ordered is not None and place is not None and ordered.add(place, self._outgoing, offset, answer):
            return
        # In no order, or refused when it was its turn: this time it goes as it comes.
        self._outgoing.send(self._server, self._route, offset, answer)

    def pass_over_before(self, offset: int | None) -> None:
        """Messages that the function was not called for, before this offset (None: all), have no result."""
        if self._ordered is not None:
            rest = [at for at in self._places if offset is None or at < offset]
            self._ordered.pass_over([self._places.pop(at) for at in rest])


def check_delivered(server: AppRunner, route: Route, job: Job, sent: deque[Sent]) -> None:
    """Wait until everything sent is acknowledged, and forget it.

    Raises the first refusal, whose message is then the job's first.
    """
    handles = [each[1] for each in sent]
    _native.wait_all(handles)
    if _native.first_undelivered(handles) is None:
        sent.clear()
        return
    del handles
    is_alone = False
    while sent:
        each = sent.popleft()
        try:
            is_alone = result_of(server, route, each, is_alone)
        except AwokeError:
            leave_refused(job, each[0], sent)
            del each
            raise


def result_of(server: AppRunner, route: Route, sent: Sent, is_alone: bool) -> bool:
    """Wait for one result, which is sent again by itself where others may be why it was refused; whether it was.

    With `is_alone` one before it was: this one follows it, so that the last result of a key stays the last.
    """
    handle = sent[1]
    try:
        handle.wait()
    except DeliveryFailed as refused:
        if not is_refused_in_company(refused):
            raise
        is_alone = True
    if is_alone:
        produce(server.alone, route, Record(*sent[2:])).wait()
    return is_alone


async def check_delivered_async(server: AppRunner, route: Route, job: Job, sent: deque[Sent]) -> None:
    """As `check_delivered`, on the event loop."""
    is_alone = False
    while sent:
        each = sent.popleft()
        try:
            is_alone = await result_of_async(server, route, each, is_alone)
        except AwokeError:
            leave_refused(job, each[0], sent)
            del each
            raise


async def result_of_async(server: AppRunner, route: Route, sent: Sent, is_alone: bool) -> bool:
    """As `result_of`, on the event loop."""
    handle = sent[1]
    try:
        await handle
    except DeliveryFailed as refused:
        if not is_refused_in_company(refused):
            raise
        is_alone = True
    if is_alone:
        await produce(server.alone, route, Record(*sent[2:]))
    return is_alone


def produce(producer: Producer | AloneProducer, route: Route, record: Record) -> DeliveryHandle:
    """Sends a record to a route's output."""
    assert route.output is not None
    return producer.produce(route.output, record.value, **record.options)


def leave_refused(job: Job, offset: int, sent: deque[Sent]) -> None:
    """The result of the message at this offset was refused: those before it are done.

    A kept exception keeps these frames alive: clearing the queue frees the handles and their client.
    """
    sent.clear()
    with contextlib.suppress(FencedError):
        job.done(offset - 1)
