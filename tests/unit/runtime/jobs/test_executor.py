"""The executor of a route: its strategy, and what it does with errors that end a job or the app."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any, cast

import pytest

import awoke
from awoke._native import Job
from awoke.runtime.jobs.strategies.exactly_once import ExactlyOnce
from awoke.runtime.jobs.strategies.lanes_output import LanesOutput
from awoke.runtime.jobs.strategies.ordered_output import OrderedOutput
from awoke.runtime.jobs.strategies.per_batch import PerBatch
from awoke.runtime.jobs.strategies.per_message import PerMessage
from awoke.runtime.jobs.strategies.with_output import WithOutput
from tests.unit.runtime.fakes import FakeContext, FakeJob, FakeTransactions, executor, process


class Consumer(awoke.Consumer):
    def consume(self, batch: Any) -> None: ...


@pytest.mark.parametrize(
    ("target", "output", "options", "strategy"),
    [
        (print, None, {}, PerMessage),
        (Consumer, None, {}, PerBatch),
        (print, "out", {}, WithOutput),
        (print, "out", {"concurrency": awoke.by_key()}, LanesOutput),
        (print, "out", {"concurrency": awoke.by_key(), "ordered": True}, OrderedOutput),
        (print, None, {"concurrency": awoke.by_key()}, PerMessage),
        (print, "out", {"exactly_once": True}, ExactlyOnce),
        (print, "out", {"exactly_once": True, "concurrency": awoke.by_key()}, ExactlyOnce),
        (Consumer, None, {"exactly_once": True}, ExactlyOnce),
    ],
)
def test_a_route_has_one_strategy(target: Any, output: str | None, options: Any, strategy: type) -> None:
    context = FakeContext(transactions=FakeTransactions())
    assert type(executor(target, context, **({"output": output} if output else {}), **options)._strategy) is strategy


def test_a_cancelled_job_is_left_to_the_next_process() -> None:
    async def never(message: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def serve(job: FakeJob) -> None:
        task = asyncio.create_task(executor(never, FakeContext()).process(cast("Job", job)))
        await asyncio.wait([task], timeout=0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    job = FakeJob()
    asyncio.run(serve(job))
    assert job.said == ["retry"]

    job = FakeJob()
    asyncio.run(serve(job))
    assert job.said == ["retry"]


def test_user_code_that_exits_ends_the_app_with_its_job_not_done() -> None:
    def leave(message: Any) -> None:
        raise SystemExit(3)

    context = FakeContext()
    job = process(executor(leave, context), FakeJob(), on_loop=False)
    assert job.said == ["retry"]
    assert [type(error) for error in context.ended] == [SystemExit]


def test_nothing_of_a_job_is_kept_when_it_has_ended() -> None:
    ran, job = executor(lambda message: None, FakeContext()), FakeJob()
    freed = weakref.ref(job)
    gc.disable()
    try:
        process(ran, job, on_loop=False)
        del job
        assert freed() is None
    finally:
        gc.enable()


def test_a_message_that_an_operator_skips_is_not_processed() -> None:
    called: list[Any] = []
    context = FakeContext()
    context.failures.failed(cast("Job", FakeJob()), ValueError("no good"), 30.0)
    assert context.failures.ask("orders", 0, 0)
    job = process(executor(called.append, context), FakeJob(), on_loop=False)
    assert called == []
    assert job.said == [("done", 0), "release_rest"]
    assert context.heard == ["message.skipped"]


def counted(context: FakeContext, error: Exception | None = None) -> list[str]:
    """Registers functions between jobs that write down their calls; the first call raises the error."""
    calls: list[str] = []

    def between() -> None:
        calls.append("def")
        if error is not None and len(calls) == 1:
            raise error

    async def between_async() -> None:
        calls.append("async def")

    context.app.cleanups.add(between)
    context.app.cleanups.add(between_async)
    return calls


def test_functions_between_jobs_are_called_before_and_after_a_job() -> None:
    context = FakeContext()
    calls = counted(context)
    process(executor(lambda message: calls.append("handler"), context), FakeJob(), on_loop=False)
    assert (calls[0], calls[-1]) == ("def", "def")
    assert set(calls[1:-1]) == {"handler"}


def test_functions_between_jobs_are_those_of_the_kind_of_the_handler() -> None:
    async def handler(message: Any) -> None: ...

    context = FakeContext()
    calls = counted(context)
    asyncio.run(executor(handler, context).process(cast("Job", FakeJob())))
    assert calls == ["async def", "async def"]


def test_an_error_before_a_job_fails_the_job() -> None:
    context, job = FakeContext(), FakeJob()
    calls = counted(context, OSError("no database"))
    process(executor(lambda message: calls.append("handler"), context), job, on_loop=False)
    assert calls == ["def", "def"]
    assert "job.failed" in context.heard
