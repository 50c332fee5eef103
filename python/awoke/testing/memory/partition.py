"""A partition in memory: its messages, and how far they are done. It stands for the engine's `Partition`.

A unit is what one job at a time works on: the whole partition, or the messages of one lane.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Iterable, Sequence

from awoke.testing.messages import MessageParts

BEGINNING, END = -2, -1
"""The offsets of the two ends, as `seek` takes them."""

_generations = itertools.count(1)
_pushes = itertools.count()


class Entry:
    """One message of a partition."""

    __slots__ = ("failed", "is_done", "is_waiting", "ordinal", "parts")

    def __init__(self, parts: MessageParts, ordinal: int) -> None:
        self.parts, self.ordinal = parts, ordinal
        self.failed = 0
        """The number of attempts that have failed in a row."""
        self.is_done = False
        self.is_waiting = False
        """True while no job has it."""

    @property
    def offset(self) -> int:
        """Its offset."""
        return self.parts.offset


class Unit:
    """Messages that run one after the other, and the time before which none of them runs."""

    __slots__ = ("due_s", "is_busy", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Entry] = deque()
        self.due_s = 0.0
        self.is_busy = False
        """True while a job has it."""


class MemoryPartition:
    """One assignment of a partition. Any thread: jobs may end on awoke's callback thread."""

    def __init__(self, topic: str, number: int, messages: Sequence[MessageParts]) -> None:
        self.topic, self.number, self.generation = topic, number, next(_generations)
        self.entries = [Entry(parts, ordinal) for ordinal, parts in enumerate(messages)]
        self.lock = threading.RLock()
        """Guards all that changes here, and in the jobs."""
        self.is_current = True
        self.is_paused = False
        self.epoch = 0
        self._due: list[tuple[float, int, int, Unit]] = []
        """A heap of the units, by the time at which they are due; it keeps entries that have become old."""
        self._first_waiting = self._first_not_done = 0
        """Ordinals: all messages before are not waiting, or are done."""
        self._stored: int | None = None
        self._metadata: str | None = None
        self._lanes: Sequence[object] | None = None
        self._sought: int | None = None

    def split(self, lanes: Sequence[object] | None) -> None:
        """Splits the messages into units: by the lane of each, None for a lane of its own; or one for all."""
        self._lanes = lanes
        self._queue(self.entries)

    def _queue(self, entries: Sequence[Entry]) -> None:
        found: dict[object, list[Entry]] = {}
        for each in entries:
            lane = () if self._lanes is None else self._lanes[each.ordinal]
            found.setdefault((each.ordinal,) if lane is None else lane, []).append(each)
        self._due, self._first_waiting = [], 0
        for unit_entries in found.values():
            self.put_back(Unit(), unit_entries, 0.0)

    def put_back(self, unit: Unit, entries: Sequence[Entry], due_s: float) -> None:
        """Puts messages in front of those of their unit that wait, which no job has now."""
        with self.lock:
            for each in entries:
                each.is_waiting = True
                self._first_waiting = min(self._first_waiting, each.ordinal)
            unit.waiting.extendleft(reversed(entries))
            unit.due_s, unit.is_busy = due_s, False
            self._push(unit)

    def _push(self, unit: Unit) -> None:
        if unit.waiting and not unit.is_busy:
            heapq.heappush(self._due, (unit.due_s, unit.waiting[0].ordinal, next(_pushes), unit))

    def due(self) -> tuple[float, int] | None:
        """Returns when the next messages are due, and the ordinal of the first; None if there are none."""
        with self.lock:
            while self._due and not self.is_paused:
                due_s, ordinal, _, unit = self._due[0]
                if not unit.is_busy and unit.waiting and (unit.due_s, unit.waiting[0].ordinal) == (due_s, ordinal):
                    return due_s, ordinal
                heapq.heappop(self._due)
            return None

    def take(self, limit: int) -> tuple[Unit, list[Entry]]:
        """Takes the messages that are due next, up to a limit; `due` has returned that there are some."""
        with self.lock:
            *_, unit = heapq.heappop(self._due)
            taken = [unit.waiting.popleft() for _ in range(min(limit, len(unit.waiting)))]
            unit.is_busy = True
            for each in taken:
                each.is_waiting = False
            return unit, taken

    @property
    def has_lanes(self) -> bool:
        """True if several jobs of it may run at once."""
        return self._lanes is not None

    @property
    def is_interrupted(self) -> bool:
        """True if a job is to end before its next message."""
        return self.is_paused or self._sought is not None or not self.is_current

    def first_waiting(self) -> int:
        """Returns the ordinal of the first message that no job has; the number of messages if there is none."""
        with self.lock:
            while self._first_waiting < len(self.entries) and not self.entries[self._first_waiting].is_waiting:
                self._first_waiting += 1
            return self._first_waiting

    def done(self, entries: Iterable[Entry]) -> None:
        """Records messages as done, and moves the stored offset up to the first that is not."""
        with self.lock:
            for each in entries:
                each.is_done = True
            while self._first_not_done < len(self.entries) and self.entries[self._first_not_done].is_done:
                self._stored = max(self._stored or 0, self.entries[self._first_not_done].offset + 1)
                self._first_not_done += 1

    def apply_seek(self) -> None:
        """Continues where a seek said, when no job runs."""
        with self.lock:
            to, self._sought = self._sought, None
            if to is None:
                return
            begin = (
                len(self.entries) if to == END else bisect.bisect_left(self.entries, to, key=lambda each: each.offset)
            )
            for each in self.entries:
                each.is_waiting = False
            for each in self.entries[begin:]:
                each.failed, each.is_done = 0, False
            self._first_not_done = begin
            self.epoch += 1
            self._queue(self.entries[begin:])

    # The engine's `Partition`.

    def offsets(self) -> tuple[int | None, int | None]:
        """Returns the stored and the committed offset, which are the same here."""
        return self._stored, self._stored

    def committed(self) -> tuple[int, str | None] | None:
        """Returns the committed offset and its metadata."""
        return None if self._stored is None else (self._stored, self._metadata)

    def annotate(self, offset: int, metadata: str | None) -> None:
        """Stores an offset and its metadata."""
        with self.lock:
            self._stored, self._metadata = max(self._stored or 0, offset), metadata

    def pause(self) -> None:
        """Begins no job until `resume`."""
        self.is_paused = True

    def resume(self) -> None:
        """Ends a pause."""
        self.is_paused = False

    def clear_backoff(self) -> None:
        """Ends the back-off of messages that wait to be tried again."""
        with self.lock:
            for unit in {id(unit): unit for *_, unit in self._due}.values():
                unit.due_s = 0.0
                self._push(unit)

    def seek(self, offset: int) -> None:
        """Goes on from this offset after the job that runs now."""
        self._sought = offset

    def offset_at(self, timestamp_ms: int) -> int:
        """Returns the first offset at or after a time; -1 for the end."""
        later = (each.offset for each in self.entries if (each.parts.timestamp_ms or 0) >= timestamp_ms)
        return next(later, END)
