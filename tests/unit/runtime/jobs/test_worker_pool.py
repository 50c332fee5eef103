"""The workers and the event loop of one runner: how many there are, and their end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

import awoke
from awoke.runtime.jobs.worker_pool import WorkerPool
from awoke.runtime.process.context import RouteContext
from awoke.runtime.process.stopping import InterruptibleWait
from tests.support.waiting import Collected, ahang
from tests.unit.runtime.fakes import FakeContext

WITHIN_S = 30.0


def handle(message: Any) -> None: ...


async def ahandle(message: Any) -> None: ...


OWN_PREFIXES = ("awoke-worker-", "awoke-loop")


class Case:
    """The pool of an app with these routes."""

    def __init__(self, *functions: Any, **settings: Any) -> None:
        self.app = awoke.App("shop")
        self.app.use(**{"workers": 3, **settings})
        for number, function in enumerate(functions):
            self.app.on(f"orders-{number}")(function)
        self.pool = WorkerPool(self.app, InterruptibleWait(), lambda error: None)

    def start(self) -> WorkerPool:
        context = cast(RouteContext, FakeContext(app=self.app))
        self.pool.start((context, route) for route in self.app.all_routes)
        return self.pool

    def end(self) -> list[threading.Thread]:
        """Ends all threads; returns those that were to end."""
        threads = self.pool.end_jobs(time.monotonic() + WITHIN_S)
        assert self.pool.end_loop(time.monotonic() + WITHIN_S) == []
        return threads

    def names(self) -> list[str]:
        """Returns the names of the pool's threads that are alive, without those that watch others."""
        names = [each.name for each in threading.enumerate() if not each.name.endswith("-watch")]
        return sorted(each for each in names if each.startswith(OWN_PREFIXES))

    def threads(self) -> list[threading.Thread]:
        return [worker.thread for worker in self.pool.workers]


@pytest.fixture
def case() -> Iterator[Case]:
    case = Case(handle)
    case.start()
    yield case
    case.end()


def test_plain_functions_have_workers_and_no_event_loop(case: Case) -> None:
    assert case.names() == ["awoke-worker-1", "awoke-worker-2", "awoke-worker-3"]
    assert case.pool.report_late(case.end()) == []
    assert [thread for thread in case.threads() if thread.is_alive()] == []


def test_async_functions_have_an_event_loop_and_no_workers() -> None:
    case = Case(ahandle)
    case.start()
    assert case.names() == ["awoke-loop"]
    assert case.end() == []


def test_async_functions_of_the_start_have_an_event_loop() -> None:
    case = Case(handle, workers=1)

    async def prepare() -> str:
        return threading.current_thread().name

    case.app.on_startup(prepare)
    pool = case.start()
    assert case.names() == ["awoke-loop", "awoke-worker-1"]
    assert pool.call_async(prepare).result(WITHIN_S) == "awoke-loop"
    case.end()


def test_async_functions_run_until_the_loop_ends() -> None:
    case = Case(ahandle)
    pool = case.start()
    pool.end_jobs(time.monotonic() + WITHIN_S)

    async def shut_down() -> str:
        return "called"

    assert pool.call_async(shut_down).result(WITHIN_S) == "called"
    hanging = pool.call_async(ahang)
    assert pool.end_loop(time.monotonic() + WITHIN_S) == []
    assert hanging.cancelled()


def test_jobs_of_threads_and_of_the_loop_come_from_schedulers_of_their_own() -> None:
    case = Case(handle, ahandle)
    plain, later = case.app.routes.values()
    threads, loop = case.pool.schedulers
    assert (case.pool.scheduler_of(plain), case.pool.scheduler_of(later)) == (threads, loop)
    assert sorted(case.pool.counters()) == ["loop", "threads"]


def test_workers_are_added_while_the_app_runs(case: Case) -> None:
    case.pool.resize(5)
    assert case.names() == [f"awoke-worker-{number}" for number in range(1, 6)]


def test_workers_that_are_too_many_end(case: Case) -> None:
    ended = Collected[threading.Thread]()

    def wait_for(thread: threading.Thread) -> None:
        thread.join(WITHIN_S)
        ended.add(thread)

    waiting = [threading.Thread(target=wait_for, args=(each,)) for each in case.threads()]
    for thread in waiting:
        thread.start()
    case.pool.resize(1)
    assert [each.is_alive() for each in ended.wait_for(2)] == [False, False]
    case.pool.resize(2)
    alive = [name.is_alive() for name in case.threads()]
    assert alive == [True, True], "ended ones are no longer counted"
    case.end()
    for thread in waiting:
        thread.join()


def test_a_size_that_was_set_before_the_start_holds() -> None:
    case = Case(handle)
    case.pool.resize(2)
    assert case.names() == []
    case.start()
    assert len(case.names()) == 2
    case.end()


def test_an_app_without_plain_functions_gets_no_workers() -> None:
    case = Case(ahandle)
    case.start()
    case.pool.resize(7)
    assert case.names() == ["awoke-loop"]
    case.end()


def test_a_pool_that_was_not_started_ends() -> None:
    assert Case(handle, ahandle).end() == []


def test_a_worker_that_hangs_is_named_with_its_stack(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    release, began = threading.Event(), threading.Event()

    def hang_here() -> None:
        began.set()
        release.wait(WITHIN_S)

    thread = threading.Thread(target=hang_here, name="awoke-worker-hanging")
    thread.start()
    assert began.wait(WITHIN_S)
    case.pool.workers.append(cast(Any, SimpleNamespace(thread=thread, unfinished=list)))
    threads = case.pool.end_jobs(time.monotonic())
    for each in threads[:-1]:
        each.join(WITHIN_S)
    assert case.pool.report_late(threads) == ["awoke-worker-hanging"]
    assert "hang_here" in caplog.text
    release.set()
    thread.join()
    assert case.pool.report_late(threads) == []
