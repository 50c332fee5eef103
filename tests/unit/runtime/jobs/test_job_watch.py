"""One job as the metrics count it, and its limit of time."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from awoke._native import Job
from awoke.declare.routing import Route
from awoke.observe.metrics.recorder import EndedJob
from awoke.runtime.jobs.executor import JobWatch
from tests.unit.runtime.fakes import FakeJob


def handle(message: Any) -> None: ...


async def ahandle(message: Any) -> None: ...


class FakeRecorder:
    """Keeps what it is told of jobs."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Any, ...]] = []

    def job_ended(self, *job: Any) -> None:
        self.jobs.append(job)


class FakeOverdue:
    """Keeps which jobs began, and which have ended."""

    def __init__(self) -> None:
        self.begun: list[tuple[Any, ...]] = []
        self.ended: list[int] = []

    def begin(self, handler: str, job: Any, limit_s: float, task: Any) -> int:
        self.begun.append((handler, limit_s, task))
        return 7

    def end(self, number: int) -> None:
        self.ended.append(number)


class FakeContext:
    def __init__(self, *, has_metrics: bool) -> None:
        self.overdue: Any = FakeOverdue()
        self.metrics: Any = FakeRecorder() if has_metrics else None


def watched(context: FakeContext, job: FakeJob, function: Any = handle, **options: Any) -> JobWatch:
    return JobWatch(Route("orders", function, cast("Any", options)), cast("Any", context), cast("Job", job))


def test_a_job_is_counted_with_its_messages_their_bytes_and_times() -> None:
    context, job = FakeContext(has_metrics=True), FakeJob(3)
    watched(context, job).end(cast("Job", job), "done")
    ((topic, name, ended),) = context.metrics.jobs
    assert (topic, name, ended._replace(ran_s=0.0)) == ("orders", "handle", EndedJob(3, 303, 0.25, 0.0, "done"))
    assert ended.ran_s >= 0


def test_messages_that_are_left_to_a_later_job_are_not_counted() -> None:
    context, job = FakeContext(has_metrics=True), FakeJob(5)
    watch = watched(context, job)
    job.left = 3
    watch.end(cast("Job", job), "failed")
    ((_, _, ended),) = context.metrics.jobs
    assert (ended.messages, ended.size_bytes, ended.outcome) == (2, 201, "failed")


def test_a_job_without_a_limit_is_not_watched() -> None:
    context, job = FakeContext(has_metrics=True), FakeJob()
    watched(context, job).end(cast("Job", job), "done")
    assert (context.overdue.begun, context.overdue.ended) == ([], [])


def test_a_job_with_a_limit_is_watched_until_its_end() -> None:
    context, job = FakeContext(has_metrics=False), FakeJob()
    watch = watched(context, job, max_processing_s=2.5)
    assert (context.overdue.begun, context.overdue.ended) == ([("handle", 2.5, None)], [])
    watch.end(cast("Job", job), "fenced")
    assert context.overdue.ended == [7]


def test_a_job_on_the_event_loop_is_watched_by_its_task() -> None:
    async def run() -> None:
        context, job = FakeContext(has_metrics=False), FakeJob()
        watched(context, job, ahandle, max_processing_s=2.5)
        assert context.overdue.begun == [("ahandle", 2.5, asyncio.current_task())]

    asyncio.run(run())


def test_without_metrics_no_batch_is_made() -> None:
    context, job = FakeContext(has_metrics=False), FakeJob()
    made: list[None] = []
    vars(job)["batch"] = lambda: made.append(None)
    watched(context, job).end(cast("Job", job), "done")
    assert made == []
