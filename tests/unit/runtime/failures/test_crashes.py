"""The record of attempts that a crash leaves behind."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

import pytest

import awoke
from awoke._native import HookJob, Job, PendingStep
from awoke.declare.routing import Route
from awoke.runtime.failures.crashes import Careful, Commit, CrashCheck, CrashRecords, Lookup, began_of, wait_for
from awoke.waiting.drive import drive

WITHIN_S = 30.0


class FakeCommit:
    """A commit that is done."""

    def done(self) -> bool:
        return True


class FakePartition:
    """An assignment whose broker answers when `answer` is set."""

    def __init__(self, committed: tuple[int, str | None] | Exception | None = None) -> None:
        self.asked, self.answer = threading.Semaphore(0), threading.Event()
        self.lookups = 0
        self.annotated: list[tuple[int, str | None]] = []
        self._committed = committed

    def committed(self) -> tuple[int, str | None] | None:
        self.lookups += 1
        self.asked.release()
        assert self.answer.wait(WITHIN_S)
        if isinstance(self._committed, Exception):
            raise self._committed
        return self._committed

    def annotate(self, offset: int, metadata: str | None) -> None:
        self.annotated.append((offset, metadata))


class FakeJob:
    """A job, or a hook, of an assignment."""

    def __init__(self, assigned: FakePartition, first_offset: int = 0, partition: int = 0, generation: int = 1) -> None:
        self.topic, self.partition, self.generation = "t", partition, generation
        self.first_offset, self._assigned = first_offset, assigned
        self.cuts = 0

    def assignment(self) -> FakePartition:
        return self._assigned

    def truncate(self, messages: int) -> None:
        self.cuts += messages


def commit_of(_: object) -> PendingStep:
    return cast("PendingStep", FakeCommit())


def route() -> Route:
    def handle(message: awoke.Message[bytes]) -> None: ...

    return Route("t", handle, {"dead_letter": "dead"})


def before(records: CrashRecords, job: FakeJob) -> CrashCheck:
    return drive(records.before(cast("Job", job), commit_of))


def after(records: CrashRecords, job: FakeJob) -> object:
    return records.after(cast("HookJob", job))


class WaitedFor(CrashRecords):
    """Says when a job has been told to wait for another one's lookup."""

    def __init__(self, route: Route) -> None:
        super().__init__(route)
        self.waiting = threading.Semaphore(0)

    def ask(self, job: Job, commit: Commit) -> CrashCheck | Lookup | Future[None]:
        found = super().ask(job, commit)
        if isinstance(found, Future):
            self.waiting.release()
        return found


@pytest.mark.parametrize(
    ("metadata", "count"),
    [(None, 0), ("", 0), ("awoke:began=2", 2), ("awoke:began=", 0), ("another program's", 0), ("2", 0)],
)
def test_a_record_is_told_from_other_metadata(metadata: str | None, count: int) -> None:
    assert began_of(metadata) == count


def test_a_slow_lookup_of_one_partition_holds_up_no_other() -> None:
    table, slow, fast = CrashRecords(route()), FakePartition(), FakePartition()
    fast.answer.set()
    with ThreadPoolExecutor(2) as pool:
        held_up = pool.submit(before, table, FakeJob(slow, partition=0))
        assert slow.asked.acquire(timeout=WITHIN_S)
        try:
            pool.submit(before, table, FakeJob(fast, partition=1)).result(WITHIN_S)
            assert not held_up.done()
        finally:
            slow.answer.set()
        held_up.result(WITHIN_S)
    assert (slow.annotated, fast.annotated) == ([(0, "awoke:began=1")], [(0, "awoke:began=1")])


def test_jobs_of_one_partition_wait_for_one_lookup() -> None:
    table, partition = WaitedFor(route()), FakePartition()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(before, table, FakeJob(partition, first_offset=offset)) for offset in range(4)]
        assert partition.asked.acquire(timeout=WITHIN_S)
        assert all(table.waiting.acquire(timeout=WITHIN_S) for _ in range(3))
        assert not any(job.done() for job in jobs)
        partition.answer.set()
        assert [job.result(WITHIN_S).deaths for job in jobs] == [0, 0, 0, 0]
    assert partition.lookups == 1
    assert len(partition.annotated) == 1


def test_a_lookup_that_fails_is_told_to_all_that_wait_and_made_anew_by_the_next() -> None:
    table, partition = WaitedFor(route()), FakePartition(awoke.KafkaError("no answer"))
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(before, table, FakeJob(partition)) for _ in range(2)]
        assert table.waiting.acquire(timeout=WITHIN_S)
        partition.answer.set()
        assert all(isinstance(job.exception(WITHIN_S), awoke.KafkaError) for job in jobs)
    with pytest.raises(awoke.KafkaError):
        before(table, FakeJob(partition))
    assert partition.lookups == 2
    assert partition.annotated == []


@pytest.mark.parametrize("metadata", [None, "awoke:began=2"])
def test_a_lookup_that_ends_after_the_partition_was_given_back_leaves_no_record(metadata: str | None) -> None:
    table, partition = WaitedFor(route()), FakePartition((0, metadata))
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(before, table, FakeJob(partition)) for _ in range(2)]
        assert partition.asked.acquire(timeout=WITHIN_S)
        assert table.waiting.acquire(timeout=WITHIN_S)
        assert after(table, FakeJob(partition)) is None
        partition.answer.set()
        assert all(isinstance(job.exception(WITHIN_S), awoke.FencedError) for job in jobs)
    assert partition.annotated == []
    assert table._records == {}


def test_a_job_that_comes_after_its_partition_was_given_back_leaves_no_record() -> None:
    table, partition = CrashRecords(route()), FakePartition()
    partition.answer.set()
    before(table, FakeJob(partition))
    assert after(table, FakeJob(partition)) is partition
    with pytest.raises(awoke.FencedError):
        before(table, FakeJob(partition))
    assert partition.annotated == [(0, "awoke:began=1"), (0, None)]
    before(table, FakeJob(partition, generation=2))
    assert partition.lookups == 2


def test_after_a_crash_jobs_go_message_by_message_with_a_record_each() -> None:
    table, partition = CrashRecords(route()), FakePartition((5, "awoke:began=2"))
    partition.answer.set()
    first, second = FakeJob(partition, 5), FakeJob(partition, 6)
    assert before(table, first).deaths == 2
    assert before(table, second).deaths == 0
    assert (first.cuts, second.cuts) == (1, 1)
    assert partition.annotated == [(5, "awoke:began=3"), (6, "awoke:began=1")]


def test_a_cancelled_task_does_not_end_the_wait_of_others() -> None:
    async def wait(table: CrashRecords, partition: FakePartition) -> None:
        def ask() -> CrashCheck | Lookup | Future[None]:
            return table.ask(cast("Job", FakeJob(partition)), commit_of)

        lookup, waiting, cancelled = ask(), ask(), ask()
        assert isinstance(lookup, Lookup)
        assert isinstance(waiting, Future)
        assert isinstance(cancelled, Future)
        tasks = [asyncio.ensure_future(wait_for(each)) for each in (waiting, cancelled)]
        await asyncio.wait(tasks, timeout=0)  # Both have begun to wait.
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        running = asyncio.get_running_loop().run_in_executor(None, lookup.run)
        partition.answer.set()
        await asyncio.gather(running, tasks[0])
        assert isinstance(ask(), CrashCheck)

    asyncio.run(wait(CrashRecords(route()), FakePartition()))


def test_care_is_announced_with_its_reason_and_its_end() -> None:
    announced: list[Careful] = []
    records = CrashRecords(route(), announced.append)
    partition = FakePartition((7, "awoke:began=1"))
    partition.answer.set()
    job = FakeJob(partition, first_offset=7)
    assert before(records, job).deaths == 1
    before(records, FakeJob(partition, first_offset=8))
    assert announced == [Careful("t", 0, 7, 1, 1_007)], "once for an assignment"


def test_without_a_death_no_care_is_announced() -> None:
    announced: list[Careful] = []
    partition = FakePartition((7, None))
    partition.answer.set()
    before(CrashRecords(route(), announced.append), FakeJob(partition, first_offset=7))
    assert announced == []
