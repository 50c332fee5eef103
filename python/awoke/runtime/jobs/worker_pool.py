"""The worker threads and the event loop of one runner, and the executors that they share.

1. `start` makes the executors and the threads, which wait for jobs of the schedulers.
2. `resize` changes the number of worker threads while the app runs.
3. `quiet` begins no new jobs; hooks still run.
4. `end_jobs` closes the schedulers and joins the workers. The event loop goes on, for async shutdown functions.
5. `end_loop` ends the event loop.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any

from awoke import _native
from awoke._native import HookJob, Job
from awoke.declare.routing import Route
from awoke.observe.loop_watch import LoopWatch
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.jobs.own_thread import executor_of
from awoke.runtime.jobs.worker import AsyncWorker, Worker, async_jobs_of, workers_of
from awoke.runtime.process.context import RouteContext, RunnableApp
from awoke.runtime.process.stopping import InterruptibleWait, join_all, remaining_s
from awoke.runtime.watch.stacks import Unfinished, stack_of

logger = logging.getLogger(__name__)


class WorkerPool:
    """Runs the jobs of an app. Any thread may call everything here."""

    def __init__(
        self, app: RunnableApp, stop_wait: InterruptibleWait, stop_app: Callable[[BaseException], object]
    ) -> None:
        self._app, self._stop_wait, self._stop_app = app, stop_wait, stop_app
        self._scheduler, self._async_scheduler = _native.Scheduler(), _native.Scheduler()
        self._executors: dict[int, Executor] = {}
        """Those of `def` handlers, by the number of the route."""
        self._async_executors: dict[int, Executor] = {}
        self._resizing = threading.Lock()
        """Guards `_wanted`, `_is_started` and `workers`."""
        self._is_started = False
        """True if there are worker threads."""
        self._wanted = workers_of(app)
        self.workers: list[Worker] = []
        self._numbers = itertools.count(1)
        self._loop: AsyncWorker | None = None

    @property
    def schedulers(self) -> list[_native.Scheduler]:
        """The scheduler of the worker threads, and that of the event loop."""
        return [self._scheduler, self._async_scheduler]

    def scheduler_of(self, route: Route) -> _native.Scheduler:
        """Returns the scheduler that a route's jobs come from."""
        return self._async_scheduler if route.is_async else self._scheduler

    def counters(self) -> dict[str, dict[str, int]]:
        """Returns what the schedulers count about themselves. Does not block."""
        return {"threads": self._scheduler.counters(), "loop": self._async_scheduler.counters()}

    def start(self, routes: Iterable[tuple[RouteContext, Route]]) -> None:
        """Starts the threads that the app's routes need, each in its context; returns when the event loop runs."""
        for context, route in routes:
            self._executors_of(route)[route.number] = self._executor(context, route)
        if self._has_threads:
            with self._resizing:
                self._is_started = True
                self._add(self._wanted)
        if self._has_loop or self._app.lifecycle.has_async:
            self._loop = AsyncWorker(
                "awoke-loop",
                self._async_scheduler,
                self._async_executors,
                async_jobs_of(self._app),
                self._stop_app,
                LoopWatch("awoke-loop", self._app.events),
            )
            self._loop.start()

    @property
    def _has_threads(self) -> bool:
        return any(not route.is_async for route in self._app.all_routes)

    @property
    def _has_loop(self) -> bool:
        return any(route.is_async for route in self._app.all_routes)

    def _executors_of(self, route: Route) -> dict[int, Executor]:
        return self._async_executors if route.is_async else self._executors

    def _executor(self, context: RouteContext, route: Route) -> Executor:
        return Executor(context, route) if route.is_async else executor_of(context, route)

    def add(self, context: RouteContext, route: Route) -> None:
        """Adds a route while the app runs, whose handler is then ready to be called. May block.

        Raises what the app raises for an argument of the handler.
        """
        executor = self._executor(context, route)
        executor.bind()
        self._executors_of(route)[route.number] = executor

    def bind(self) -> None:
        """Makes all handlers ready to be called, before the first job. May block.

        Raises what the app raises for an argument of a handler.
        """
        for executor in [*self._executors.values(), *self._async_executors.values()]:
            executor.bind()

    def resize(self, workers: int) -> None:
        """Changes the number of worker threads; of too many, busy ones end after their job. Does not block."""
        with self._resizing:
            more = workers - self._wanted
            self._wanted = workers
            self.workers = [worker for worker in self.workers if worker.thread.is_alive()]
            if self._is_started and more > 0:
                self._add(more)
            elif self._is_started and more < 0:
                self._scheduler.dismiss(-more)

    def running(self) -> list[Job | HookJob]:
        """Returns the jobs and hooks that run now. Does not block."""
        found = [work for worker in self.workers if (work := worker.running) is not None]
        return found if self._loop is None else found + self._loop.running()

    def unfinished(self) -> list[Unfinished]:
        """Returns the code of jobs and hooks that runs now, or waits, with its stack. Does not block."""
        found = [each for worker in self.workers for each in worker.unfinished()]
        return found if self._loop is None else found + self._loop.unfinished()

    def report_late(self, threads: list[threading.Thread]) -> list[str]:
        """Logs what each thread that is still alive runs, or the tasks of its event loop; returns their names."""
        late = [thread for thread in threads if thread.is_alive()]
        workers: list[Worker | AsyncWorker] = [*self.workers, *([] if self._loop is None else [self._loop])]
        own = {worker.thread: worker for worker in workers}
        for thread in late:
            worker = own.get(thread)
            found = [] if worker is None else worker.unfinished()
            for what, stack in found or [Unfinished(thread.name, stack_of(thread))]:
                logger.error("%s is still running, at:\n%s", what, stack)
        return [thread.name for thread in late]

    def call_async(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        """Calls an async function on the event loop. Does not block."""
        assert self._loop is not None, "an async function was registered during the start"
        return self._loop.call(function)

    def end_jobs(self, deadline_s: float) -> list[threading.Thread]:
        """Joins the workers and waits for the loop's jobs, until the deadline. Returns the threads that were to end."""
        for scheduler in self.schedulers:
            scheduler.close()
        with self._resizing:
            threads = [worker.thread for worker in self.workers]
        self._stop_wait.call(partial(join_all, threads, deadline_s), None)
        for executor in list(self._executors.values()):
            threads += self._stop_wait.call(partial(executor.close, deadline_s), executor.threads())
        loop = self._loop
        if loop is not None and not self._stop_wait.call(lambda: loop.join_jobs(remaining_s(deadline_s)), False):
            threads.append(loop.thread)
        return threads

    def end_loop(self, deadline_s: float) -> list[str]:
        """Ends the event loop, which has run the async shutdown functions; its name if it does not end in time.
        Blocks."""
        loop = self._loop
        if loop is None:
            return []
        loop.finish()
        if not loop.join_jobs(0.0):
            return []  # A job is late, which was reported.
        return [] if loop.join(remaining_s(deadline_s, 1.0)) else [loop.thread.name]

    def _add(self, count: int) -> None:
        for _ in range(count):
            worker = Worker(f"awoke-worker-{next(self._numbers)}", self._scheduler, self._executors)
            self.workers.append(worker)
            worker.start()
