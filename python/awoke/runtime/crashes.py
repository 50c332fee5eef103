"""Recognises a message that kills its process: a segmentation fault, a lack of memory.

Whoever dies can't report it, so the attempt is written down before: in the metadata of the partition's committed offset,
once per assignment. Whoever comes next and finds a record that nobody has taken away or passed by knows that its
predecessor died at that offset or behind it. It then goes carefully, message by message, each with its own committed
record; the message at which the process has died as often as its route allows is given up.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from awoke._native import HookJob, Job, Partition, PendingCommit
from awoke.errors import FencedError
from awoke.routing import CAREFUL_MESSAGES

if TYPE_CHECKING:
    from awoke.routing import Route

PREFIX = "awoke:began="
Key = tuple[str, int, int]
Commit = Callable[[Partition], PendingCommit]
"""Brings what is stored for a partition to the broker."""


class _Record(NamedTuple):
    partition: Partition
    offset: int
    """The offset that the record stands beside."""
    careful_until: int
    """Messages before this offset are taken one by one."""
    commit: PendingCommit | None = None
    """The commit that brings the first record of an assignment; every job that begins before its answer waits for it."""


class Verdict(NamedTuple):
    """What to do with a job before it runs."""

    commit: PendingCommit | None
    """To be waited for first: the record must be with the broker before user code runs."""
    deaths: int
    """How often the process has died at the job's first message."""


class CrashRecords:
    """The records of one route's partitions.

    Several jobs of one may come at once; after a crash the engine gives them one at a time.
    """

    def __init__(self, route: Route) -> None:
        self._limit = route.retry.crashes
        lanes = route.lanes
        self._careful_messages = max(CAREFUL_MESSAGES, route.batch.max_messages) if lanes is None else lanes.careful
        self._records: dict[Key, _Record] = {}
        self._lock = threading.Lock()

    def before(self, job: Job, commit: Commit) -> Verdict:
        """Write down that the job's first message is begun, where that is called for; cuts a job that is to go carefully.

        Blocks for the first job of an assignment, which asks the broker for the last record.
        """
        key = (job.topic, job.partition, job.generation)
        with self._lock:
            return self._before(key, job, commit)

    def _before(self, key: Key, job: Job, commit: Commit) -> Verdict:
        record = self._records.get(key)
        first = job.first_offset
        if record is None:
            return self._begin(key, job, commit)
        if first >= record.careful_until:
            if record.commit is None or record.commit.done():
                return Verdict(None, 0)
            return Verdict(record.commit, 0)
        job.cut(1)
        if first > record.offset:
            self._records[key] = record._replace(offset=first)
            return self._write(record.partition, first, 1, 0, commit)
        return Verdict(None, 0)

    def _begin(self, key: Key, job: Job, commit: Commit) -> Verdict:
        partition, first = job.assignment(), job.first_offset
        committed = partition.committed()
        deaths = began_of(committed[1]) if committed is not None else 0
        if deaths:
            job.cut(1)
        verdict = self._write(partition, first, deaths + 1, deaths, commit)
        careful_until = first + self._careful_messages if deaths else 0
        self._records[key] = _Record(partition, first, careful_until, verdict.commit)
        return verdict

    def _write(self, partition: Partition, offset: int, began: int, deaths: int, commit: Commit) -> Verdict:
        partition.annotate(offset, f"{PREFIX}{began}")
        return Verdict(commit(partition), deaths)

    def is_given_up(self, verdict: Verdict) -> bool:
        """Whether the job's first message is to be given up."""
        return verdict.deaths >= self._limit

    def after(self, hook: HookJob) -> Partition | None:
        """The partition is given back in order: whoever comes next must not take the record for a crash.

        Returns the partition where there was one, for the last commit.
        """
        record = self._records.pop((hook.topic, hook.partition, hook.generation), None)
        if record is None:
            return None
        with contextlib.suppress(FencedError):
            record.partition.annotate(record.offset, None)
        return record.partition


def began_of(metadata: str | None) -> int:
    """How many attempts a record counts; 0 for metadata that is none."""
    number = (metadata or "").removeprefix(PREFIX)
    return int(number) if (metadata or "").startswith(PREFIX) and number.isdecimal() else 0
