"""The executor of a route: its strategy, and what it does with errors that end a job or the app."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any, cast

import awoke
from awoke._native import Job
from awoke.runtime.jobs.executor import Executor
from tests.unit.runtime.fakes import FakeContext, FakeJob, executor, process

PACKAGE = str(Path(awoke.__file__).parent)

STAYS_MAX = 12
"""The most visits to a file of awoke, or of user code, from `run_job` to the handler and back."""


def stays(ran: Executor, job: FakeJob) -> list[str]:
    """Runs a job; returns the files that its thread comes through, those of awoke and this one, in order."""
    found: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        file = None if frame is None else frame.f_code.co_filename
        if file is not None and event in ("call", "return"):
            here = frame if event == "call" else frame.f_back
            name = "" if here is None else here.f_code.co_filename
            if (name.startswith(PACKAGE) or name == __file__) and found[-1:] != [name]:
                found.append(name)

    sys.setprofile(profile)
    try:
        ran.run_job(cast("Job", job))
    finally:
        sys.setprofile(None)
    assert found.pop(0) == found.pop() == __file__
    return [Path(file).name for file in found]


def test_the_way_of_a_message_to_its_handler_and_back_is_short() -> None:
    ran = executor(lambda message: None, FakeContext())
    ran.run_job(cast("Job", FakeJob(1)))
    found = stays(ran, FakeJob(1))
    assert Path(__file__).name in found
    assert len(found) <= STAYS_MAX, found


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
