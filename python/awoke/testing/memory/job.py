"""Jobs and hooks of a partition in memory. They stand for the engine's `Job` and `HookJob`, and behave as these do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from awoke._native import Batch, Decoders, Message, make_batch
from awoke.testing.memory.partition import Entry, MemoryPartition, Unit

Clock = Callable[[], float]
"""Returns the time in seconds."""


class MemoryJob:
    """Messages of one unit. It ends with `complete`, `retry` or `release`; any thread may end it."""

    waited_s = 0.0
    is_fenced = False
    has_several_lanes = False
    left = 0

    def __init__(
        self, assignment: MemoryPartition, unit: Unit, entries: Sequence[Entry], now: Clock, route_number: int
    ) -> None:
        self._assignment, self._unit, self._entries, self._now = assignment, unit, entries, now
        self.topic, self.partition, self.generation = assignment.topic, assignment.number, assignment.generation
        self.route_number = route_number
        self._lock = assignment.lock
        self._done, self._end = 0, len(entries)
        self._parts: list[MemoryJob] = []
        self.ended = threading.Event()

    @property
    def is_of_lanes(self) -> bool:
        """True if it is one of several jobs of its partition."""
        return self._assignment.has_lanes

    @property
    def epoch(self) -> int:
        """The number of the reading of the partition."""
        return self._assignment.epoch

    @property
    def attempt(self) -> int:
        """The number of the attempt at the first message that is not done, from 1."""
        return self._first.failed + 1

    @property
    def first_offset(self) -> int:
        """The offset of the first message that is not done, of the last one where all are."""
        return self._first.offset

    @property
    def last_ordinal(self) -> int:
        """The ordinal of its last message."""
        return self._entries[-1].ordinal

    @property
    def remaining(self) -> int:
        """The number of messages that are not done."""
        return self._end - self._done

    @property
    def rest_offset(self) -> int | None:
        """The offset of the first message that was left to a later job."""
        return self._entries[self._end].offset if self._end < len(self._entries) else None

    @property
    def _first(self) -> Entry:
        return self._entries[min(self._done, len(self._entries) - 1)]

    def assignment(self) -> MemoryPartition:
        """Returns the partition."""
        return self._assignment

    def batch(self, decoders: Decoders | None = None) -> Batch[Any, Any]:
        """Returns the messages that are not done, decoded by these functions."""
        parts = [each.parts for each in self._entries[self._done : self._end]]
        return make_batch((self.topic, self.partition), parts, decoders, self.attempt)

    def each(self, batch: Batch[Any], is_done_when_passed: bool = False) -> Iterator[Message[Any]]:
        """Gives the messages of this batch, and leaves the rest if the partition is interrupted."""
        for number, message in enumerate(batch):
            if number > 0 and self._assignment.is_interrupted:
                self._end = self._index(message.offset)
                return
            yield message

    def ordinals(self) -> list[int | None]:
        """Returns the ordinals of the messages that are not done."""
        return [each.ordinal for each in self._entries[self._done : self._end]]

    def truncate(self, messages: int) -> None:
        """Leaves all but this number of the messages that are not done to a later job."""
        self._end = min(self._end, self._done + max(messages, 1))

    def done(self, offset: int) -> None:
        """Records that all messages up to this offset are done."""
        self._done_until(self._index(offset + 1))

    def done_before(self, offset: int) -> None:
        """Records that all messages before this offset are done."""
        self._done_until(self._index(offset))

    def split_off(self, offset: int) -> MemoryJob | None:
        """Splits the messages up to this offset off into a job of their own; None where one job at a time runs."""
        if not self.is_of_lanes:
            return None
        index = max(self._done, min(self._index(offset + 1), self._end))
        entries, self._done = self._entries[self._done : index], index
        part = MemoryJob(self._assignment, Unit(), entries, self._now, self.route_number)
        self._parts.append(part)
        return part

    def split_lanes_behind(self, offset: int) -> MemoryJob | None:
        """Returns None: there is one lane."""
        return None

    def unended(self) -> list[MemoryJob]:
        """Returns the job and the parts that were split off it, as far as they have not ended."""
        return [each for each in (self, *self._parts) if not each.ended.is_set()]

    def leave_slot(self, keeps_assigned: bool, others_s: float = 0.0) -> None:
        """Does nothing: the next job of the partition runs when this one waits for its answers."""

    def keep_assigned(self) -> bool:
        """Returns True: the partition stays assigned until the end of the run."""
        return True

    def allow_revoke(self) -> None:
        """Does nothing, as `keep_assigned`."""

    def complete(self) -> None:
        """Records that all messages are done, and gives the unit back."""
        self._done_until(self._end)
        self.release()

    def release(self) -> None:
        """Gives the unit back without storing an offset."""
        self._give_back(self._end, 0.0)

    def release_rest(self) -> None:
        """Gives the unit back; the messages that are not done come again, with attempt 1."""
        for each in self._entries[self._done :]:
            each.failed = 0
        self._give_back(self._done, 0.0)

    def retry(self, delay_s: float, is_counted: bool = True) -> None:
        """Gives the unit back; the messages that are not done come again after the delay."""
        if self.remaining and not self.ended.is_set():
            self._first.failed += is_counted
            self._give_back(self._done, self._now() + delay_s)
        else:
            self.release()

    def _give_back(self, begin: int, due_s: float) -> None:
        with self._lock:
            if not self.ended.is_set():
                self._assignment.put_back(self._unit, self._entries[begin:], due_s)
                self.ended.set()

    def _done_until(self, index: int) -> None:
        with self._lock:
            if index > self._done:
                self._assignment.done(self._entries[self._done : index])
                self._done = index

    def _index(self, offset: int) -> int:
        """Returns the number of messages before this offset."""
        return sum(each.offset < offset for each in self._entries)


class MemoryHook:
    """A hook to run on a partition in memory."""

    def __init__(self, name: str, assignment: MemoryPartition, route_number: int) -> None:
        self.name, self._assignment, self.route_number = name, assignment, route_number
        self.topic, self.partition, self.generation = assignment.topic, assignment.number, assignment.generation

    def assignment(self) -> MemoryPartition:
        """Returns the partition."""
        return self._assignment

    def finish(self) -> None:
        """Does nothing: the run goes on when the hook has returned."""


class MemoryLanes:
    """Messages whose lanes the route's own function tells. It stands for the engine's `LaneAssignment`."""

    def __init__(self, assignment: MemoryPartition, route_number: int) -> None:
        self._assignment, self.route_number = assignment, route_number
        self.topic, self.partition = assignment.topic, assignment.number
        self.numbers: list[int] = []

    def batch(self, decoders: Decoders | None = None) -> Batch[Any, Any]:
        """Returns the messages."""
        return make_batch((self.topic, self.partition), [each.parts for each in self._assignment.entries], decoders)

    def finish(self, numbers: list[int]) -> None:
        """Takes the lane of each message."""
        self.numbers = numbers
