"""A consumer class: each batch is one call, on the instance of its assignment."""

from __future__ import annotations

from typing import Any

import pytest

import awoke
from awoke.declare.consumer import current_job
from tests.unit.runtime.fakes import KINDS, FakeContext, FakeJob, executor, process


def consumer_class(consume: Any, is_async: bool) -> type[awoke.Consumer]:
    async def consume_async(self: Any, batch: Any) -> None:
        consume(self, batch)

    return type("Consumer", (awoke.Consumer,), {"consume": consume_async if is_async else consume})


@KINDS
def test_a_consumer_gets_the_batch_and_knows_its_job(is_async: bool) -> None:
    seen: list[Any] = []

    def consume(self: Any, batch: Any) -> None:
        seen.append((batch.offsets(), self.partition, current_job.get() is not None))

    job = process(executor(consumer_class(consume, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert seen == [([0, 1, 2], 0, True)]
    assert current_job.get() is None
    assert (job.said, job.detached) == (["complete"], 0)


@KINDS
def test_a_batch_that_fails_or_is_kept_is_copied(is_async: bool) -> None:
    kept: list[Any] = []

    def fail(self: Any, batch: Any) -> None:
        raise ValueError("no good")

    failed = process(executor(consumer_class(fail, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert (failed.said, failed.detached) == (["retry"], 1)
    keep: Any = lambda self, batch: kept.append(batch)  # noqa: E731
    done = process(executor(consumer_class(keep, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert (done.said, done.detached) == (["complete"], 1)


@pytest.mark.parametrize("wanted", [[], [1]])
def test_skipped_messages_are_not_in_the_batch(wanted: list[int]) -> None:
    seen: list[Any] = []
    flow = awoke.Flow(where=lambda message: message.offset in wanted)
    consumer = consumer_class(lambda self, batch: seen.append(batch.offsets()), False)
    job = process(executor(consumer, FakeContext(), flow=flow), FakeJob(), on_loop=False)
    assert seen == ([wanted] if wanted else [])
    assert job.said == ["complete"]
