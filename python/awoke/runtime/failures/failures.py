"""Keeps the messages that fail and are tried again, for health and for `awoke skip`.

A message is skipped at its next try: on its worker, instead of its handler.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Literal, NamedTuple

from awoke._native import Job, Partition
from awoke.errors import FencedError, RetriesExhausted
from awoke.observe.events import PartitionRewound
from awoke.text.durations import duration
from awoke.text.printable import shown
from awoke.waiting.clock import monotonic_s

KEY_MAX = 40
"""The most bytes of a key that are shown."""

Place = tuple[str, int]
"""Topic and partition."""
Leaving = Literal["skip", "dead_letter"]
"""The way to leave a failing message without processing it, as an operator asked."""


class KeptFailure(NamedTuple):
    """A message that has failed, and the assignment of its partition."""

    assignment: Partition
    generation: int
    offset: int
    key: bytes | None
    attempts: int
    error: str
    """As text: an exception would keep its frames, and the message with them."""
    since_s: float
    """When it failed first, by the monotonic clock."""
    next_s: float
    """When it is tried again."""

    def __str__(self) -> str:
        now_s = monotonic_s()
        key = "no key" if self.key is None else f"key {self.key[:KEY_MAX]!r}"
        again = "is tried now" if self.next_s <= now_s else f"is tried again in {duration(self.next_s - now_s)}"
        for_s = duration(now_s - self.since_s)
        failed = (
            f"once, {for_s} ago, with" if self.attempts == 1 else f"{self.attempts} times in {for_s}, the last with"
        )
        return f"offset {self.offset} ({key}) failed {failed} {self.error}; it {again}"


class Failures:
    """The failing messages of one process. Nothing here blocks. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.failing: dict[Place, dict[int, KeptFailure]] = {}
        """Those of each partition, by offset. Empty most of the time, which may be seen without the lock."""
        self.asked: dict[Place, dict[int, Leaving]] = {}
        """The failing messages that an operator wants to be left, by offset, and how."""

    def failed(self, job: Job, error: BaseException, retry_in_s: float) -> None:
        """Notes that a job's first message has failed and is to be tried again. To be called before the job ends.

        Notes nothing where all of it is done by now: a transaction was committed after its user code had failed.
        """
        now_s = monotonic_s()
        with contextlib.suppress(FencedError):
            batch = job.batch()
            if not len(batch):
                return
            entry = KeptFailure(
                assignment=job.assignment(),
                generation=job.generation,
                offset=batch[0].offset,
                key=batch[0].key,
                attempts=job.attempt,
                error=shown(error),
                since_s=now_s,
                next_s=now_s + retry_in_s,
            )
            with self._lock:
                known = self._of(job)
                earlier = known.get(entry.offset)
                if earlier is not None:
                    entry = entry._replace(since_s=earlier.since_s)
                others = known if job.is_of_lanes else {}
                self.failing[(job.topic, job.partition)] = {**others, entry.offset: entry}

    def all(self) -> list[tuple[Place, KeptFailure]]:
        """Returns all messages that fail, each with its place."""
        with self._lock:
            found = {place: self._current(*place) for place in list(self.failing)}
        return [(place, entry) for place, entries in found.items() for entry in entries.values()]

    def blocked(self, after_s: float) -> dict[Place, list[KeptFailure]]:
        """Returns those that have failed for this long, by place, the oldest failure first."""
        now_s = monotonic_s()
        found: dict[Place, list[KeptFailure]] = {}
        for place, entry in sorted(self.all(), key=lambda each: each[1].since_s):
            if now_s - entry.since_s >= after_s:
                found.setdefault(place, []).append(entry)
        return found

    def retried(self, topic: str, partition: int) -> None:
        """Notes that a message waits for its back-off. A message that is to be skipped is tried at once instead."""
        if not self.asked:
            return
        with self._lock:
            known = self._current(topic, partition)
            asked = [known[offset] for offset in self.asked.get((topic, partition), ())]
        for entry in asked[:1]:
            with contextlib.suppress(FencedError):
                entry.assignment.clear_backoff()

    def passed(self, job: Job, offset: int | None = None) -> None:
        """Notes that a message, or the job's first one, fails no longer. To be called before the job ends."""
        if not self.failing:
            return
        place = (job.topic, job.partition)
        with self._lock:
            known = self._of(job) if job.is_of_lanes else {}
            known.pop(job.first_offset if offset is None else offset, None)
            self._keep(place, known)

    def take(self, job: Job) -> tuple[Leaving, RetriesExhausted] | None:
        """Returns how and why the job's first message is to be left, or None where it is not."""
        if not self.asked:
            return None
        place = (job.topic, job.partition)
        with self._lock:
            entry = self._of(job).get(job.first_offset)
            how = self.asked.get(place, {}).get(job.first_offset)
            if entry is None or how is None:
                return None
            done = "skipped" if how == "skip" else "sent to the dead letter topic"
            return how, RetriesExhausted(f"{done} by an operator; it failed with {entry.error}")

    def ask(self, topic: str, partition: int, offset: int, how: Leaving = "skip") -> bool:
        """Marks a message to be left; returns false where it is not failing."""
        with self._lock:
            entry = self._current(topic, partition).get(offset)
            if entry is None:
                return False
            self.asked.setdefault((topic, partition), {})[offset] = how
        with contextlib.suppress(FencedError):
            entry.assignment.clear_backoff()  # It does not wait for its back-off.
        return True

    def retry_now(self, topic: str, partition: int) -> bool:
        """Ends the back-off of the failing messages of a partition; returns false where none fails."""
        with self._lock:
            entries = list(self._current(topic, partition).values())
        for entry in entries[:1]:
            with contextlib.suppress(FencedError):
                entry.assignment.clear_backoff()
        return bool(entries)

    def blocking(self, topic: str, partition: int) -> list[int]:
        """Returns the offsets of the messages that fail, in order."""
        with self._lock:
            return sorted(self._current(topic, partition))

    def forget(self, topic: str, partition: int) -> None:
        """Forgets the messages of a partition: its log was renewed, and the same offsets are other messages."""
        with self._lock:
            self._keep((topic, partition), {})

    def on_rewound(self, event: PartitionRewound) -> None:
        """Forgets the messages of a partition whose log went back."""
        self.forget(event.topic, event.partition)

    def _of(self, job: Job) -> dict[int, KeptFailure]:
        """Returns the failing messages of the job's assignment."""
        known = self.failing.get((job.topic, job.partition), {})
        return {offset: entry for offset, entry in known.items() if entry.generation == job.generation}

    def _current(self, topic: str, partition: int) -> dict[int, KeptFailure]:
        """Returns the failing messages of the current assignment that no later commit has left behind."""
        known = self.failing.get((topic, partition), {})
        current = {offset: entry for offset, entry in known.items() if is_open(entry, offset)}
        self._keep((topic, partition), current)
        return current

    def _keep(self, place: Place, known: dict[int, KeptFailure]) -> None:
        asked = {offset: how for offset, how in self.asked.pop(place, {}).items() if offset in known}
        if asked:
            self.asked[place] = asked
        self.failing.pop(place, None)
        if known:
            self.failing[place] = known


def is_open(entry: KeptFailure, offset: int) -> bool:
    """Tells whether the partition of a message is still assigned, and the message is not done."""
    try:
        stored, _ = entry.assignment.offsets()
    except FencedError:
        return False
    return entry.assignment.is_current and (stored is None or stored <= offset)
