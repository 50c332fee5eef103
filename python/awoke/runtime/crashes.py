"""Recognises a message that kills its process: a segmentation fault, a lack of memory.

Whoever dies can't report it, so the attempt is written down before: in the metadata of the partition's committed offset,
once per assignment. Whoever comes next and finds a record that nobody has taken away or passed by knows that its
predecessor died at that offset or behind it. It then goes carefully, message by message, each with its own committed
record; the message at which the process has died as often as its route allows is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from awoke._native import HookJob, Job, Partition, PendingCommit
from awoke.errors import FencedError, OperationTimeout
from awoke.routing import CAREFUL_MESSAGES

if TYPE_CHECKING:
    from awoke.routing import Route

PREFIX = "awoke:began="
Key = tuple[str, int, int]
Commit = Callable[[Partition], PendingCommit]
"""Brings what is stored for a partition to the broker."""


LOOKUP_WAIT_S = 30.0
"""How long a job waits for another one's lookup, which itself ends after librdkafka's own time-out (10 s)."""


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


class Careful(NamedTuple):
    """A partition whose messages are taken one by one, because its process has died."""

    topic: str
    partition: int
    offset: int
    """The first message that may have killed the process."""
    deaths: int
    until_offset: int
    """Messages before this offset are taken one by one."""


class Lookup(NamedTuple):
    """The first job of an assignment asks the broker for the last record; jobs that come meanwhile wait for `is_over`."""

    run: Callable[[], Verdict]
    """Asks and writes the job's own record down. Blocks; the job that got the lookup calls it exactly once."""
    is_over: Future[None]
    """Ends when the answer is in the table, or with the error that there is instead."""


class CrashRecords:
    """The records of one route's partitions. Any thread.

    Several jobs of one may come at once; after a crash the engine gives them one at a time.
    """

    def __init__(self, route: Route, on_careful: Callable[[Careful], object] = lambda careful: None) -> None:
        self._on_careful = on_careful
        self._limit = route.retry.crashes
        lanes = route.lanes
        self._careful_messages = max(CAREFUL_MESSAGES, route.batch.max_messages) if lanes is None else lanes.careful
        self._lock = threading.Lock()
        """Guards everything below; never held while the broker is asked."""
        self._records: dict[Key, _Record | Future[None]] = {}
        """A future stands for a lookup that is under way."""
        self._ended: dict[tuple[str, int], int] = {}
        """The last generation of each partition that was given back: a late job must leave no record behind."""

    def before(self, job: Job, commit: Commit) -> Verdict:
        """Write down that the job's first message is begun, where that is called for; cuts a job that is to go carefully.

        Blocks while the broker is asked for the last record of the job's own partition.

        Raises:
            FencedError: the partition was given back; KafkaError, OperationTimeout: the broker did not tell the record.
        """
        while not isinstance(found := self.ask(job, commit), Verdict):
            if isinstance(found, Lookup):
                return found.run()
            wait_for(found)
        return found

    def ask(self, job: Job, commit: Commit) -> Verdict | Lookup | Future[None]:
        """As `before`, without blocking: a lookup that the caller runs, or another one's to wait for before it asks again.

        Raises:
            FencedError: the partition was given back.
        """
        key = (job.topic, job.partition, job.generation)
        with self._lock:
            record = self._records.get(key)
            if isinstance(record, Future):
                return record
            if record is not None:
                return self._known(key, record, job, commit)
            if job.generation <= self._ended.get(key[:2], -1):
                raise given_back(key)
            is_over: Future[None] = Future()
            is_over.set_running_or_notify_cancel()  # A waiting task that is cancelled must not cancel it for the others.
            self._records[key] = is_over
        return Lookup(partial(self._look_up, key, is_over, job, commit), is_over)

    def _known(self, key: Key, record: _Record, job: Job, commit: Commit) -> Verdict:
        first = job.first_offset
        if first >= record.careful_until:
            if record.commit is None or record.commit.done():
                return Verdict(None, 0)
            return Verdict(record.commit, 0)
        job.truncate(1)
        if first > record.offset:
            self._records[key] = record._replace(offset=first)
            return self._write(record.partition, first, 1, 0, commit)
        return Verdict(None, 0)

    def _look_up(self, key: Key, is_over: Future[None], job: Job, commit: Commit) -> Verdict:
        try:
            partition = job.assignment()
            committed = partition.committed()
            with self._lock:
                if self._records.get(key) is not is_over:
                    raise given_back(key)
                verdict = self._begin(key, partition, began_of(committed[1]) if committed else 0, job, commit)
        except BaseException as error:
            with self._lock:
                if self._records.get(key) is is_over:
                    del self._records[key]
            is_over.set_exception(error)
            raise
        is_over.set_result(None)
        if verdict.deaths:
            first = job.first_offset
            self._on_careful(Careful(*key[:2], first, verdict.deaths, first + self._careful_messages))
        return verdict

    def _begin(self, key: Key, partition: Partition, deaths: int, job: Job, commit: Commit) -> Verdict:
        first = job.first_offset
        if deaths:
            job.truncate(1)
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

        Returns the partition where there was one, for the last commit. A lookup that is under way leaves none behind.
        """
        key = (hook.topic, hook.partition, hook.generation)
        with self._lock:
            self._ended[key[:2]] = hook.generation
            record = self._records.pop(key, None)
            if not isinstance(record, _Record):
                return None
            with contextlib.suppress(FencedError):
                record.partition.annotate(record.offset, None)
            return record.partition


def wait_for(lookup: Future[None]) -> None:
    """Wait for the lookup of another job of the partition. Blocks.

    Raises:
        OperationTimeout: it did not end in time; AwokeError: what it ended with.
    """
    try:
        lookup.result(LOOKUP_WAIT_S)
    except TimeoutError:
        raise timed_out() from None


async def wait_for_async(lookup: Future[None]) -> None:
    """As `wait_for`, on an event loop."""
    try:
        await asyncio.wait_for(asyncio.wrap_future(lookup), LOOKUP_WAIT_S)
    except TimeoutError:
        raise timed_out() from None


def timed_out() -> OperationTimeout:
    """The error of a job that waited too long for another one's lookup."""
    operation = "look up the last crash record"
    return OperationTimeout(f"{operation}: no answer within {LOOKUP_WAIT_S:g} s", operation, LOOKUP_WAIT_S)


def given_back(key: Key) -> FencedError:
    """The error of a job whose partition was given back meanwhile."""
    topic, partition, _ = key
    return FencedError(f"{topic}[{partition}] was given back before its crash record was written", topic, partition)


def began_of(metadata: str | None) -> int:
    """How many attempts a record counts; 0 for metadata that is none."""
    number = (metadata or "").removeprefix(PREFIX)
    return int(number) if (metadata or "").startswith(PREFIX) and number.isdecimal() else 0
