"""A batch that user code keeps is detached, one that it lets go of is not; a failed job knows what was done before."""

from __future__ import annotations

from typing import Any, cast

import pytest

import awoke
from awoke._native import Batch, Job
from awoke.declare.routing import Route
from awoke.runtime.failures.undecodable import Undecodable
from awoke.runtime.jobs.message_loop import LentBatches, detach_kept, offset_before
from tests.unit.runtime.fakes import KINDS, FakeContext, FakeJob, executor, fails_at, handler, process


def handle(message: awoke.Message[bytes]) -> None: ...


def batches(**options: Any) -> LentBatches:
    return LentBatches(Route("orders", handle, cast("Any", options)), awoke.Events(), Undecodable())


def taken(source: LentBatches, job: FakeJob) -> tuple[Any, Any]:
    return source.of(cast("Job", job))


def test_a_batch_that_nothing_refers_to_is_not_copied() -> None:
    job = FakeJob()
    batch, lease = taken(batches(), job)
    assert len(batch) == 3
    del batch
    detach_kept(lease)
    assert job.detached == 0


@pytest.mark.parametrize("keep", [lambda batch: batch, lambda batch: batch[1], lambda batch: [*batch]])
def test_a_kept_batch_or_message_is_copied(keep: Any) -> None:
    job = FakeJob()
    batch, lease = taken(batches(), job)
    kept = keep(batch)
    del batch
    detach_kept(lease)
    assert job.detached == 1
    del kept


def test_a_message_that_a_filter_keeps_is_copied_although_it_is_passed_over() -> None:
    kept: list[Any] = []

    def where(message: Any) -> bool:
        kept.append(message) if message.offset == 0 else None
        return bool(message.offset)

    job = FakeJob()
    batch, lease = taken(batches(flow=awoke.Flow(where=where)), job)
    assert batch.offsets() == [1, 2]
    del batch
    detach_kept(lease)
    assert job.detached == 1


def test_no_batch_is_left_where_all_is_passed_over() -> None:
    job = FakeJob()
    batch, lease = taken(batches(flow=awoke.Flow(where=lambda message: False)), job)
    assert batch is None
    detach_kept(lease)
    assert job.detached == 0


def test_the_engines_batches_can_be_referred_to_weakly() -> None:
    assert cast("Any", Batch).__weakrefoffset__ > 0


@pytest.mark.parametrize(("offset", "before"), [(7, 2), (2, 5), (5, None), (None, None)])
def test_the_message_before_another_one_is_the_one_that_was_handled_before(
    offset: int | None, before: int | None
) -> None:
    job = FakeJob()
    job.offsets = [5, 2, 7]  # Several lanes.
    assert offset_before(cast("Any", job.batch()), offset) == before


@KINDS
def test_messages_that_were_passed_over_are_not_what_was_handled_before(is_async: bool) -> None:
    flow = awoke.Flow(where=lambda message: message.offset != 2)
    function = handler(lambda message: None if message.offset < 3 else fails_at(3)(message), is_async)
    job = process(executor(function, FakeContext(), flow=flow), FakeJob(4), on_loop=is_async)
    assert (job.said, job.detached) == ([("done", 1), "retry"], 1)
