"""Recognises a message that kills its process: a segmentation fault, a lack of memory.

A process that dies cannot report it. So the attempt is recorded before: in the metadata of the partition's
committed offset, once per assignment. The next owner that finds a record, neither removed nor passed by later
commits, knows that its predecessor died at that offset or behind it. It then works carefully, message by message,
each with a committed record of its own. A message at which the process has died as often as its route allows is
exhausted.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from awoke._native import HookJob, Job, Partition, PendingStep
from awoke.declare.routing import CAREFUL_MESSAGES, Route
from awoke.errors import AwokeError, FencedError, OperationTimeout, ProcessDied
from awoke.observe.events import CrashRecordFailed, PartitionCareful
from awoke.runtime.failures.recovery import Recovery
from awoke.runtime.process.assigned import Key, key_of
from awoke.runtime.process.context import CommitContext
from awoke.waiting.drive import elsewhere, until

PREFIX = "awoke:began="
Commit = Callable[[Partition], PendingStep]
"""Commits what is stored for a partition."""


LOOKUP_WAIT_S = 30.0
"""A job waits this long for another one's lookup, which itself ends after librdkafka's own time-out (10 s)."""


class _Record(NamedTuple):
    partition: Partition
    offset: int
    """The committed offset whose metadata the record is."""
    careful_until: int
    """Messages before this offset are taken one by one."""
    commit: PendingStep | None = None
    """The commit that brings the first record of an assignment; a job that begins before its answer waits for it."""


class CrashCheck(NamedTuple):
    """The result of the check before a job runs."""

    commit: PendingStep | None
    """To be awaited first: the broker must hold the record before user code runs."""
    deaths: int
    """The number of times in a row that the process has died at the job's first message."""


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
    """A lookup of the last record, by the first job of an assignment. Later jobs wait for `is_over` meanwhile."""

    run: Callable[[], CrashCheck]
    """Asks the broker, and writes the job's own record. Blocks; the job that got the lookup calls it exactly once."""
    is_over: Future[None]
    """Ends when the answer is in the table, or with the error of the lookup."""


class CrashRecords:
    """The records of one route's partitions. Any thread.

    Several jobs of a partition may come at once; after a crash the engine gives them one at a time.
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

    async def before(self, job: Job, commit: Commit) -> CrashCheck:
        """Records that the job's first message is begun, where that is called for; cuts a job that is to go carefully.

        Waits while the broker is asked for the last record of the job's own partition.

        Raises:
            FencedError: the partition was given back; KafkaError, OperationTimeout: the record could not be read.
        """
        while not isinstance(found := self.ask(job, commit), CrashCheck):
            if isinstance(found, Lookup):
                return await elsewhere(found.run)
            await wait_for(found)
        return found

    def ask(self, job: Job, commit: Commit) -> CrashCheck | Lookup | Future[None]:
        """Checks without blocking. Returns the result, a lookup for the caller to run, or another job's to wait for.

        Raises:
            FencedError: the partition was given back.
        """
        key = key_of(job)
        with self._lock:
            record = self._records.get(key)
            if isinstance(record, Future):
                return record
            if record is not None:
                return self._known(key, record, job, commit)
            if job.generation <= self._ended.get(key[:2], -1):
                raise given_back(key)
            is_over: Future[None] = Future()
            is_over.set_running_or_notify_cancel()  # A cancelled waiter must not cancel it for the others.
            self._records[key] = is_over
        return Lookup(partial(self._look_up, key, is_over, job, commit), is_over)

    def _known(self, key: Key, record: _Record, job: Job, commit: Commit) -> CrashCheck:
        first = job.first_offset
        if first >= record.careful_until:
            if record.commit is None or record.commit.done():
                return CrashCheck(None, 0)
            return CrashCheck(record.commit, 0)
        job.truncate(1)
        if first > record.offset:
            self._records[key] = record._replace(offset=first)
            return self._write(record.partition, first, 1, 0, commit)
        return CrashCheck(None, 0)

    def _look_up(self, key: Key, is_over: Future[None], job: Job, commit: Commit) -> CrashCheck:
        try:
            partition = job.assignment()
            committed = partition.committed()
            with self._lock:
                if self._records.get(key) is not is_over:
                    raise given_back(key)
                check = self._begin(key, partition, began_of(committed[1]) if committed else 0, job, commit)
        except BaseException as error:
            with self._lock:
                if self._records.get(key) is is_over:
                    del self._records[key]
            is_over.set_exception(error)
            raise
        is_over.set_result(None)
        if check.deaths:
            first = job.first_offset
            self._on_careful(Careful(*key[:2], first, check.deaths, first + self._careful_messages))
        return check

    def _begin(self, key: Key, partition: Partition, deaths: int, job: Job, commit: Commit) -> CrashCheck:
        first = job.first_offset
        if deaths:
            job.truncate(1)
        check = self._write(partition, first, deaths + 1, deaths, commit)
        careful_until = first + self._careful_messages if deaths else 0
        self._records[key] = _Record(partition, first, careful_until, check.commit)
        return check

    def _write(self, partition: Partition, offset: int, began: int, deaths: int, commit: Commit) -> CrashCheck:
        partition.annotate(offset, f"{PREFIX}{began}")
        return CrashCheck(commit(partition), deaths)

    def is_exhausted(self, check: CrashCheck) -> bool:
        """Tells whether the job's first message is exhausted."""
        return check.deaths >= self._limit

    def after(self, hook: HookJob) -> Partition | None:
        """Removes the record of a partition that is given back in order: its next owner must not take it for a crash.

        Returns the partition where there was one, for the last commit. A lookup that is under way leaves none behind.
        """
        key = key_of(hook)
        with self._lock:
            self._ended[key[:2]] = hook.generation
            record = self._records.pop(key, None)
            if not isinstance(record, _Record):
                return None
            with contextlib.suppress(FencedError):
                record.partition.annotate(record.offset, None)
            return record.partition


class CrashGuard:
    """Asks the crash records of one route before each job. For routes with a dead letter topic. Any thread."""

    def __init__(self, route: Route, context: CommitContext, recovery: Recovery) -> None:
        self._route, self._context, self._recovery = route, context, recovery
        self._records = CrashRecords(route, self._on_careful)

    async def may_run(self, job: Job) -> bool:
        """Records the attempt, and waits until the broker holds the record.

        Returns false where the job is not to run and has been given back: its partition is lost, or its first
        message has killed the process too often and is exhausted.
        """
        try:
            check = await self._check(job)
            if check.commit is not None:
                await until(check.commit)
        except FencedError:
            job.retry(0.0)  # The partition was given back before the job ran: its next owner processes the messages.
            return False
        except AwokeError as failed:
            # The record could not be written or read. That is no fault of the message, which is processed all the same.
            self._context.events.emit(
                CrashRecordFailed(handler=self._route.name, topic=job.topic, partition=job.partition, error=failed)
            )
            return True
        if not self._records.is_exhausted(check):
            return True
        await self._recovery.exhaust(job, check.deaths, died(check))
        return False

    def after(self, hook: HookJob) -> Partition | None:
        """Removes the record of an assignment that ends; returns the partition where there was one, for the last
        commit."""
        return self._records.after(hook)

    async def _check(self, job: Job) -> CrashCheck:
        commit = self._commit()
        return CrashCheck(None, 0) if commit is None else await self._records.before(job, commit)

    def _commit(self) -> Commit | None:
        """Returns what brings a record to the broker; None before the member has joined."""
        transactions, member = self._context.transactions, self._context.member
        if transactions is not None and self._route.is_exactly_once:
            return transactions.commit
        return None if member is None else lambda _: member.commit()

    def _on_careful(self, careful: Careful) -> None:
        text = (
            "a process that had begun this message died before its next commit; to find a message that kills its "
            f"process, the messages before offset {careful.until_offset} are taken one by one, each with a commit"
        )
        self._context.events.emit(
            PartitionCareful(group=self._context.group, handler=self._route.name, **careful._asdict(), text=text)
        )


def died(check: CrashCheck) -> ProcessDied:
    """Returns the error for the dead letter of a message that killed its process."""
    return ProcessDied(f"the process died {check.deaths} times in a row at this message")


class Ended(NamedTuple):
    """Waits for the end of another job's lookup; for `until`."""

    lookup: Future[None]

    def done(self) -> bool:
        """Tells whether the lookup has ended."""
        return self.lookup.done()

    def wait(self) -> None:
        """Blocks up to `LOOKUP_WAIT_S`. Raises TimeoutError, or what the lookup ended with."""
        self.lookup.result(LOOKUP_WAIT_S)

    def __await__(self) -> Generator[Any, Any, None]:
        return asyncio.wait_for(asyncio.wrap_future(self.lookup), LOOKUP_WAIT_S).__await__()


async def wait_for(lookup: Future[None]) -> None:
    """Waits for the lookup of another job of the partition.

    Raises:
        OperationTimeout: it did not end in time; AwokeError: what it ended with.
    """
    try:
        await until(Ended(lookup))
    except TimeoutError:
        raise timed_out() from None


def timed_out() -> OperationTimeout:
    """Returns the error of a job that waited too long for another one's lookup."""
    operation = "look up the last crash record"
    return OperationTimeout(f"{operation}: no answer within {LOOKUP_WAIT_S:g} s", operation, LOOKUP_WAIT_S)


def given_back(key: Key) -> FencedError:
    """Returns the error of a job whose partition was given back meanwhile."""
    topic, partition, _ = key
    return FencedError(f"{topic}[{partition}] was given back before its crash record was written", topic, partition)


def began_of(metadata: str | None) -> int:
    """Returns the number of attempts in a record; 0 for metadata that is no record."""
    number = (metadata or "").removeprefix(PREFIX)
    return int(number) if (metadata or "").startswith(PREFIX) and number.isdecimal() else 0
