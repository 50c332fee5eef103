"""A job in memory behaves as the engine's."""

from __future__ import annotations

from typing import Any

import pytest

from awoke import _native
from awoke.testing.memory.job import MemoryHook, MemoryJob, MemoryLanes
from awoke.testing.memory.partition import MemoryPartition
from awoke.testing.messages import MessageParts

OF_A_STOP = {"store_passed"}
"""Methods that only the stop of a process calls."""


def partition_of(count: int, lanes: list[object] | None = None) -> MemoryPartition:
    parts = [MessageParts(10 * at, b"v", b"k", [], None) for at in range(count)]
    partition = MemoryPartition("orders", 0, parts)
    partition.split(lanes)
    return partition


def job_of(partition: MemoryPartition, limit: int = 100, now_s: float = 0.0) -> MemoryJob:
    unit, entries = partition.take(limit)
    return MemoryJob(partition, unit, entries, lambda: now_s, 1)


def offsets(job: MemoryJob) -> list[int]:
    return job.batch().offsets()


@pytest.mark.parametrize(
    ("native", "instance"),
    [
        (_native.Job, job_of(partition_of(1))),
        (_native.HookJob, MemoryHook("assigned", partition_of(1), 1)),
        (_native.LaneAssignment, MemoryLanes(partition_of(1), 1)),
        (_native.Partition, partition_of(1)),
    ],
    ids=["job", "hook", "lanes", "partition"],
)
def test_it_has_all_that_the_engines_has(native: type, instance: Any) -> None:
    names = {name for name in dir(native) if not name.startswith("_")} - OF_A_STOP
    assert sorted(name for name in names if not hasattr(instance, name)) == []


def test_completed_messages_are_done_and_stored() -> None:
    partition = partition_of(3)
    job = job_of(partition)
    assert offsets(job) == [0, 10, 20]
    job.complete()
    assert job.ended.is_set()
    assert (partition.offsets(), partition.due()) == ((21, 21), None)


def test_a_failed_job_keeps_the_rest_for_after_the_delay_and_counts_the_attempt() -> None:
    partition = partition_of(3)
    job = job_of(partition, now_s=5.0)
    job.done(0)
    assert (job.attempt, job.first_offset, job.remaining, offsets(job)) == (1, 10, 2, [10, 20])
    job.retry(2.5)
    assert partition.due() == (7.5, 1)
    again = job_of(partition)
    assert (again.attempt, again.first_offset, offsets(again), partition.offsets()[0]) == (2, 10, [10, 20], 1)
    again.retry(0.0, is_counted=False)
    assert job_of(partition).attempt == 2


def test_the_rest_is_released_with_attempt_one() -> None:
    partition = partition_of(2)
    job_of(partition).retry(0.0)
    job = job_of(partition)
    job.release_rest()
    assert job_of(partition).attempt == 1


def test_a_truncated_job_leaves_the_rest_to_a_later_one() -> None:
    partition = partition_of(3)
    job = job_of(partition)
    job.truncate(0)
    assert (offsets(job), job.remaining, job.rest_offset) == ([0], 1, 10)
    job.complete()
    assert offsets(job_of(partition)) == [10, 20]


def test_a_job_that_has_ended_changes_nothing_more() -> None:
    partition = partition_of(2)
    job = job_of(partition)
    job.retry(0.0)
    job.retry(9.0)
    assert partition.due() == (0.0, 0)
    assert len(offsets(job_of(partition))) == 2


def test_messages_are_given_until_the_partition_is_paused() -> None:
    partition = partition_of(3)
    job = job_of(partition)
    seen = []
    for message in job.each(job.batch()):
        seen.append(message.offset)
        partition.pause()
    assert (seen, job.rest_offset, job.remaining) == ([0], 10, 1)
    job.complete()
    assert partition.due() is None
    partition.resume()
    assert partition.due() == (0.0, 1)


def test_a_released_job_stores_no_offset() -> None:
    partition = partition_of(2)
    job_of(partition).release()
    assert (partition.offsets(), partition.due()) == ((None, None), None)


def test_of_lanes_a_job_is_split_and_the_stored_offset_waits_for_the_first() -> None:
    partition = partition_of(4, ["a", "b", "b", "b"])
    first, second = job_of(partition), job_of(partition)
    assert (first.is_of_lanes, second.ordinals()) == (True, [1, 2, 3])
    part = second.split_off(20)
    assert part is not None
    assert (offsets(part), offsets(second)) == ([10, 20], [30])
    second.retry(0.0)
    part.complete()
    assert (partition.offsets()[0], second.unended(), part.unended()) == (None, [], [])
    first.complete()
    assert partition.offsets()[0] == 21


def test_a_job_of_a_whole_partition_is_not_split() -> None:
    assert job_of(partition_of(2)).split_off(0) is None
