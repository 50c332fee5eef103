"""A second signal finds the messages that are done in jobs that still run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import CodeType, SimpleNamespace
from typing import Any

import pytest

from awoke.runtime import stopping
from awoke.runtime.loops import MESSAGE_LOOPS, PROGRESS_LOOPS
from awoke.runtime.stopping import InterruptibleWait, store_progress
from awoke.runtime.strategies.per_message import PerMessage
from awoke.runtime.strategies.with_output import WithOutput


class FakeJob:
    """A job that notes how far it is done."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def done(self, offset: int) -> None:
        self.offsets.append(offset)


def call(job: FakeJob, handler: Callable[[], None]) -> None:
    """As the executor: the last message that is done stands in `done`."""
    done = SimpleNamespace(offset=8)
    handler()
    del done, job


async def call_async(job: FakeJob, handler: Callable[[], Any]) -> None:
    done = SimpleNamespace(offset=8)
    outcome = handler()
    if outcome is not None:
        await outcome
    del done, job


def test_only_results_that_need_no_acknowledgement_are_stored_early() -> None:
    assert {PerMessage.run.__code__} == PROGRESS_LOOPS
    assert WithOutput.run.__code__ in MESSAGE_LOOPS


@pytest.fixture(autouse=True)
def loops(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: set[CodeType] = {call.__code__, call_async.__code__}
    monkeypatch.setattr(stopping, "PROGRESS_LOOPS", codes)


def test_a_job_on_a_thread_stores_what_is_done() -> None:
    job, begun, end = FakeJob(), threading.Event(), threading.Event()

    def handler() -> None:
        begun.set()
        end.wait(30)

    thread = threading.Thread(target=call, args=(job, handler))
    thread.start()
    assert begun.wait(30)
    store_progress([thread], [])
    end.set()
    thread.join()
    assert job.offsets == [8]


def test_a_job_that_is_awaited_stores_what_is_done() -> None:
    async def run() -> list[int]:
        job, end = FakeJob(), asyncio.Event()
        task = asyncio.create_task(call_async(job, end.wait))
        await asyncio.wait([task], timeout=0)
        store_progress([], [task.get_coro()])
        end.set()
        await task
        return job.offsets

    assert set(asyncio.run(run())) == {8}


def test_a_job_whose_coroutine_runs_at_that_moment_stores_what_is_done() -> None:
    job, begun, end = FakeJob(), threading.Event(), threading.Event()
    tasks: list[asyncio.Task[None]] = []

    def handler() -> None:
        begun.set()
        end.wait(30)

    async def run() -> None:
        await call_async(job, handler)  # A coroutine that runs does not say what it awaits.

    async def serve() -> None:
        tasks.append(asyncio.create_task(run()))
        await tasks[0]

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert begun.wait(30)
    store_progress([thread], [tasks[0].get_coro()])
    end.set()
    thread.join()
    assert set(job.offsets) == {8}


def test_a_wait_ends_with_its_function_its_time_or_a_second_signal() -> None:
    wait, end = InterruptibleWait(), threading.Event()

    def outlast() -> str:
        end.wait(30)
        return "done"

    assert wait.call(lambda: "done", "late") == "done"
    assert wait.call(outlast, "late", within_s=0.05) == "late"
    assert wait.interrupt() is True
    assert wait.interrupt() is False
    assert wait.call(lambda: "done", "late") == "done", "what does not block is done all the same"
    assert wait.call(outlast, "late", interrupted_s=0.05) == "late"
    end.set()
    with pytest.raises(ValueError, match="no good"):
        wait.call(lambda: int("no good"), 0)
    for thread in threading.enumerate():
        if thread.name == "awoke-stop-step":
            thread.join(30)
