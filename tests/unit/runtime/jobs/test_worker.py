"""Worker threads and the event loop: they take work of a scheduler until it closes."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextvars import Context
from typing import Any, cast

import pytest

import awoke
from awoke._native import Notifier, Scheduler
from awoke.runtime.jobs import worker as module
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.jobs.worker import AsyncWorker, Worker, async_jobs_of, workers_of
from awoke.runtime.process.context import RunnableApp
from tests.support.waiting import Collected

WITHIN_S = 30.0
LATER_S = 3600.0


class FakeWork:
    """Work for one route."""

    def __init__(self, route_number: int = 1) -> None:
        self.route_number = route_number


class FakeJob(FakeWork): ...


class FakeHook(FakeWork): ...


class FakeLanes(FakeWork): ...


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds of work that can be made without an engine."""
    for name, kind in (("Job", FakeJob), ("HookJob", FakeHook), ("LaneAssignment", FakeLanes)):
        monkeypatch.setattr(module, name, kind)


class FakeExecutor:
    """The code of one route; its jobs on the event loop run until they are let go."""

    def __init__(self, number: int = 1) -> None:
        self.number, self.ran = number, Collected[str]()
        self.open: dict[int, asyncio.Event] = {}
        self.is_broken = False
        self.new_context = Context

    def run_job(self, job: Any) -> None:
        self.ran.add("job")

    def run_hook(self, hook: Any) -> None:
        self.ran.add("hook")

    def assign_lanes(self, assignment: Any) -> None:
        self.ran.add("lanes")

    async def process(self, job: Any) -> None:
        if self.is_broken:
            self.ran.add("broken")
            raise RuntimeError("an error of awoke's own")
        place = len(self.open)
        self.open[place] = asyncio.Event()
        self.ran.add("job")
        await self.open[place].wait()
        self.ran.add("job ended")

    async def call_hook(self, hook: Any) -> None:
        self.ran.add("hook")


class FakeScheduler:
    """Gives what it was given; waits for nothing."""

    def __init__(self, *works: FakeWork) -> None:
        self._works, self._lock = deque(works), threading.Lock()
        self._notifier: Notifier | None = None
        self._is_closed = False
        self.later_s: float | None = None
        """Its first answer is that there is work after this time."""
        self.asked = 0

    def next(self) -> FakeWork | None:
        return self._works.popleft() if self._works else None

    def next_or_notify(self, notifier: Notifier) -> tuple[FakeWork | None, float | None, bool]:
        with self._lock:
            self._notifier = notifier
            self.asked += 1
            later_s, self.later_s = self.later_s, None
            if later_s is None and self._works:
                return self._works.popleft(), None, False
            return None, later_s, self._is_closed

    def put(self, *works: FakeWork) -> None:
        with self._lock:
            self._works.extend(works)
            assert self._notifier is not None
            self._notifier.notify()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            assert self._notifier is not None
            self._notifier.notify()


def executors(*found: FakeExecutor) -> dict[int, Executor]:
    return {each.number: cast(Executor, each) for each in found}


def worker_of(scheduler: Any, *found: FakeExecutor) -> Worker:
    return Worker("awoke-worker-1", cast(Scheduler, scheduler), executors(*found))


def test_each_kind_of_work_goes_to_the_executor_of_its_route() -> None:
    first, second = FakeExecutor(1), FakeExecutor(2)
    works = [FakeHook(2), FakeJob(), FakeLanes(), FakeJob(2)]
    worker = worker_of(FakeScheduler(*works), first, second)
    worker.start()
    assert worker.join(WITHIN_S)
    assert (first.ran.items, second.ran.items) == (["job", "lanes"], ["hook", "job"])


def test_a_job_is_freed_before_the_worker_waits_for_the_next() -> None:
    jobs: list[weakref.ref[FakeWork]] = []
    freed: list[bool] = []

    class Watching(FakeScheduler):
        def next(self) -> FakeWork | None:
            freed.extend(job() is None for job in jobs)
            if jobs:
                return None
            work = FakeJob()  # On the worker's thread: without the GIL, the thread that made an object frees it.
            jobs.append(weakref.ref(work))
            return work

    worker = worker_of(Watching(), FakeExecutor())
    worker.start()
    assert worker.join(WITHIN_S)
    assert freed == [True]


def test_a_worker_ends_when_the_scheduler_closes() -> None:
    scheduler = Scheduler()
    worker = worker_of(scheduler)
    worker.start()
    assert not worker.join(0.0)
    scheduler.close()
    assert worker.join(WITHIN_S)


def test_as_many_workers_end_as_are_dismissed() -> None:
    scheduler, ended = Scheduler(), Collected[Worker]()
    workers = [worker_of(scheduler) for _ in range(3)]
    for worker in workers:
        worker.start()

    def wait_for(worker: Worker) -> None:
        if worker.join(WITHIN_S):
            ended.add(worker)

    waiting = [threading.Thread(target=wait_for, args=(worker,)) for worker in workers]
    for thread in waiting:
        thread.start()
    scheduler.dismiss(2)
    assert len(ended.wait_for(2)) == 2
    scheduler.close()
    ended.wait_for(3)
    for thread in waiting:
        thread.join()


class Loop:
    """A worker with an event loop, its scheduler and the executor of its only route."""

    def __init__(self, jobs_max: int = 2) -> None:
        self.scheduler, self.executor = FakeScheduler(), FakeExecutor()
        self.ends: list[BaseException] = []
        self.left: asyncio.Task[None] | None = None
        """A task that user code has left on the loop."""
        found = executors(self.executor)
        self.worker = AsyncWorker("awoke-loop", cast(Scheduler, self.scheduler), found, jobs_max, self.ends.append)

    def let_go(self, place: int) -> None:
        """Ends a job."""

        async def end() -> None:
            self.executor.open[place].set()

        self.worker.call(end).result(WITHIN_S)

    def turn(self) -> None:
        """Returns when the loop has seen what it was notified of before, and what follows from it."""

        async def nothing() -> None: ...

        for _ in range(2):
            self.worker.call(nothing).result(WITHIN_S)

    def end(self) -> None:
        """Ends the loop after its last job."""
        self.scheduler.close()
        assert self.worker.join_jobs(WITHIN_S)
        self.worker.finish()
        assert self.worker.join(WITHIN_S)


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    loop.worker.start()
    yield loop
    loop.end()


def test_no_more_jobs_run_at_once_than_may(loop: Loop) -> None:
    loop.scheduler.put(*(FakeJob() for _ in range(3)))
    assert loop.executor.ran.wait_for(2) == ["job", "job"]
    assert len(loop.worker.running()) == 2
    loop.let_go(1)
    assert loop.executor.ran.wait_for(4)[2:] == ["job ended", "job"], "the third begins when another ends"
    loop.let_go(0)
    loop.let_go(2)


def test_hooks_and_lanes_are_run_on_the_loop(loop: Loop) -> None:
    loop.scheduler.put(FakeLanes(), FakeHook())
    assert loop.executor.ran.wait_for(2) == ["lanes", "hook"]


def test_lanes_are_assigned_at_once_and_count_as_no_job(loop: Loop) -> None:
    loop.scheduler.put(FakeJob(), FakeLanes(), FakeLanes(), FakeJob())
    assert loop.executor.ran.wait_for(4)[:2] == ["lanes", "lanes"]
    for place in range(2):
        loop.let_go(place)


def test_work_that_is_due_later_is_asked_for_then() -> None:
    loop = Loop()
    loop.scheduler.later_s = 0.01
    loop.scheduler._works.append(FakeHook())
    loop.worker.start()
    assert loop.executor.ran.wait_for(1) == ["hook"], "without a notification"
    loop.end()


def test_an_error_of_awokes_own_ends_its_job_only(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    loop.executor.is_broken = True
    loop.scheduler.put(*(FakeJob() for _ in range(5)))
    loop.executor.ran.wait_for(5)
    loop.scheduler.put(FakeHook())
    loop.executor.ran.wait_for(6)
    assert "failed outside of user code" in caplog.text
    assert "an error of awoke's own" in caplog.text


def test_the_jobs_have_ended_with_the_last_one_after_the_scheduler_has_closed(loop: Loop) -> None:
    loop.scheduler.put(FakeJob())
    loop.executor.ran.wait_for(1)
    loop.scheduler.close()
    loop.turn()
    assert not loop.worker.join_jobs(0.0)
    loop.let_go(0)
    assert loop.worker.join_jobs(WITHIN_S)


def test_async_functions_run_on_the_loop_after_its_jobs_have_ended(loop: Loop) -> None:
    loop.scheduler.close()
    assert loop.worker.join_jobs(WITHIN_S)

    async def name() -> str:
        return threading.current_thread().name

    assert loop.worker.call(name).result(WITHIN_S) == "awoke-loop"
    assert not loop.worker.join(0.0), "it ends only when it may"


def test_a_loop_asks_for_no_work_while_it_closes(loop: Loop) -> None:
    """Back-offs and late notifications may come while tasks of user code end, and threads of the loop's executor."""
    loop.scheduler.later_s = LATER_S
    loop.scheduler.put()
    asked = Collected[int]()

    async def begin() -> None:
        running, past_s = asyncio.get_running_loop(), asyncio.get_running_loop().time

        async def left() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                before = loop.scheduler.asked
                running.time = lambda: past_s() + LATER_S  # type: ignore[method-assign]
                loop.scheduler.put()
                for _ in range(3):
                    await asyncio.sleep(0)
                asked.add(loop.scheduler.asked - before)

        loop.left = asyncio.create_task(left())

    loop.turn()
    loop.worker.call(begin).result(WITHIN_S)
    loop.end()
    assert asked.items == [0]
    assert loop.ends == []


def test_a_loop_that_has_ended_may_be_told_to_end() -> None:
    loop = Loop()
    loop.worker.start()
    loop.end()
    loop.worker.finish()
    assert loop.worker.running() == []


def handle(message: Any) -> None: ...


async def ahandle(message: Any) -> None: ...


def app_of(*routes: tuple[Any, Any], **settings: Any) -> RunnableApp:
    app = awoke.App("shop")
    app.use(**settings)
    for number, (function, concurrency) in enumerate(routes):
        app.on(f"orders-{number}", concurrency=concurrency)(function)
    return app


@pytest.mark.parametrize(
    ("jobs", "workers"), [((), 4), ((1,), 4), ((16, 8), 16), ((500,), 64)], ids=["none", "few", "most", "limit"]
)
def test_there_are_as_many_workers_as_a_route_has_jobs(jobs: tuple[int, ...], workers: int) -> None:
    assert workers_of(app_of(*((handle, awoke.by_key(each)) for each in jobs))) == workers


def test_the_number_of_workers_may_be_set_and_jobs_of_the_loop_do_not_count() -> None:
    assert workers_of(app_of((handle, awoke.by_key(16)), workers=2)) == 2
    assert workers_of(app_of((ahandle, awoke.by_key(16)))) == 4


@pytest.mark.parametrize(
    ("route", "settings", "jobs"),
    [
        ((ahandle, None), {}, 100),
        ((ahandle, awoke.by_key(16)), {}, 10_000),
        ((handle, awoke.by_key(16)), {}, 100),
        ((ahandle, awoke.by_key(16)), {"async_jobs_max": 7}, 7),
    ],
    ids=["plain", "lanes", "lanes of threads", "set"],
)
def test_the_loop_runs_more_jobs_where_a_route_has_lanes(route: Any, settings: dict[str, Any], jobs: int) -> None:
    assert async_jobs_of(app_of(route, **settings)) == jobs
