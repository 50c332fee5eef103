"""The consumers of a route: made once for an assignment, made anew where a hook failed, and ended with it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke._native import HookJob, Job
from awoke.declare.consumer import Hold, current_job, give
from awoke.declare.routing import Route
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.jobs.instances import Instances, finished
from awoke.waiting.drive import drive
from tests.unit.runtime.fakes import KINDS, FakeContext, FakeJob, executor, process

KEY = ("orders", 0, 1)


class Flaky(awoke.Consumer):
    """Its `assigned` fails as often as `failures` says; all instances note their calls in `calls`."""

    failures = 0
    calls: list[str]

    def assigned(self) -> Any:
        type(self).calls.append("assigned")
        if type(self).failures:
            type(self).failures -= 1
            raise OSError("not yet")

    def consume(self, batch: Any) -> None:
        type(self).calls.append("consume")

    def revoked(self) -> Any:
        type(self).calls.append("revoked")


class AsyncFlaky(Flaky):
    async def assigned(self) -> None:
        super().assigned()

    async def consume(self, batch: Any) -> None:  # type: ignore[override]
        super().consume(batch)

    async def revoked(self) -> None:
        super().revoked()


def consumer_class(is_async: bool, failures: int = 0) -> type[Flaky]:
    base = AsyncFlaky if is_async else Flaky
    return cast("type[Flaky]", type("Consumer", (base,), {"calls": [], "failures": failures}))


def run(flow: Any, is_async: bool) -> None:
    asyncio.run(flow) if is_async else drive(flow)


@KINDS
def test_a_hook_that_failed_is_tried_again_before_the_next_batch_on_another_instance(is_async: bool) -> None:
    consumer, context = consumer_class(is_async, failures=1), FakeContext()
    executor = Executor(cast("Any", context), Route("orders", consumer, {}))
    run(executor.call_hook(cast("HookJob", FakeJob(name="assigned"))), is_async)
    assert context.heard == ["hook.failed"]
    job = FakeJob()
    run(executor.process(cast("Job", job)), is_async)
    assert consumer.calls == ["assigned", "assigned", "consume"]
    assert job.said == ["complete"]


@KINDS
def test_a_hook_that_fails_again_keeps_its_batch_waiting(is_async: bool) -> None:
    consumer, context = consumer_class(is_async, failures=2), FakeContext()
    executor = Executor(cast("Any", context), Route("orders", consumer, {}))
    run(executor.call_hook(cast("HookJob", FakeJob(name="assigned"))), is_async)
    job = FakeJob()
    run(executor.process(cast("Job", job)), is_async)
    assert job.said == ["retry"]
    assert "consume" not in consumer.calls
    assert context.heard == ["hook.failed", "job.failed"]


@KINDS
def test_the_last_hook_ends_the_instance_before_the_partition_is_given_back(is_async: bool) -> None:
    consumer, context = consumer_class(is_async), FakeContext()
    executor = Executor(cast("Any", context), Route("orders", consumer, {}))
    run(executor.call_hook(cast("HookJob", FakeJob(name="assigned"))), is_async)
    assert KEY in executor._instances
    hook = FakeJob(name="revoked")
    run(executor.call_hook(cast("HookJob", hook)), is_async)
    assert consumer.calls == ["assigned", "revoked"]
    assert KEY not in executor._instances
    assert hook.said == ["finish"]


def test_a_hook_without_an_instance_is_skipped() -> None:
    consumer, context = consumer_class(False), FakeContext()
    executor = Executor(cast("Any", context), Route("orders", consumer, {}))
    drive(executor.call_hook(cast("HookJob", FakeJob(name="revoked"))))
    assert consumer.calls == []


def test_a_consumer_that_is_dropped_takes_its_tasks_with_it() -> None:
    """The scope of an instance that failed to assign is closed: its threads are told, its tasks cancelled."""
    ended: list[str] = []

    async def serve_forever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("task")

    class Starting(awoke.Consumer):
        async def assigned(self) -> None:
            self.background(serve_forever)
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0)
            raise OSError("not yet")

        async def consume(self, batch: Any) -> None: ...

    async def serve() -> list[str]:
        executor = Executor(cast("Any", FakeContext()), Route("orders", Starting, {}))
        await executor.call_hook(cast("HookJob", FakeJob(name="assigned")))
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0)
        return list(ended)

    assert asyncio.run(serve()) == ["task"]


@KINDS
def test_a_consumer_whose_job_outlived_its_assignment_hears_that_it_is_lost(is_async: bool) -> None:
    heard: list[str] = []

    class Losing(awoke.Consumer):
        def consume(self, batch: Any) -> Any: ...

        def lost(self) -> Any:
            async def lose() -> None:
                heard.append("lost")

            return lose() if is_async else heard.append("lost")

    instances = Instances(Route("orders", Losing, {}), cast("Any", FakeContext()))
    instances._route.is_async = is_async
    consumer = Losing()
    give(consumer, Hold(assignment=cast("Any", SimpleNamespace(is_current=False))))
    instances._instances[KEY] = consumer
    run(instances.let_go_of_fenced(cast("Job", FakeJob())), is_async)
    run(instances.let_go_of_fenced(cast("Job", FakeJob())), is_async)
    assert heard == ["lost"], "once"


def test_a_hook_that_would_not_run_is_refused() -> None:
    async def forgotten() -> None: ...

    with pytest.raises(awoke.HandlerDidNotRun):
        drive(finished(forgotten(), "Consumer.assigned", is_async=False))
    drive(finished(forgotten(), "Consumer.assigned", is_async=True))


# Batches.


def class_with(consume: Any, is_async: bool) -> type[awoke.Consumer]:
    async def consume_async(self: Any, batch: Any) -> None:
        consume(self, batch)

    return type("Consumer", (awoke.Consumer,), {"consume": consume_async if is_async else consume})


@KINDS
def test_a_consumer_gets_the_batch_and_knows_its_job(is_async: bool) -> None:
    seen: list[Any] = []

    def consume(self: Any, batch: Any) -> None:
        seen.append((batch.offsets(), self.partition, current_job.get() is not None))

    job = process(executor(class_with(consume, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert seen == [([0, 1, 2], 0, True)]
    assert current_job.get() is None
    assert (job.said, job.detached) == (["complete"], 0)


@KINDS
def test_a_batch_that_fails_or_is_kept_is_copied(is_async: bool) -> None:
    kept: list[Any] = []

    def fail(self: Any, batch: Any) -> None:
        raise ValueError("no good")

    failed = process(executor(class_with(fail, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert (failed.said, failed.detached) == (["retry"], 1)
    keep: Any = lambda self, batch: kept.append(batch)  # noqa: E731
    done = process(executor(class_with(keep, is_async), FakeContext()), FakeJob(), on_loop=is_async)
    assert (done.said, done.detached) == (["complete"], 1)


@pytest.mark.parametrize("wanted", [[], [1]])
def test_skipped_messages_are_not_in_the_batch(wanted: list[int]) -> None:
    seen: list[Any] = []
    flow = awoke.Flow(where=lambda message: message.offset in wanted)
    consumer = class_with(lambda self, batch: seen.append(batch.offsets()), False)
    job = process(executor(consumer, FakeContext(), flow=flow), FakeJob(), on_loop=False)
    assert seen == ([wanted] if wanted else [])
    assert job.said == ["complete"]
