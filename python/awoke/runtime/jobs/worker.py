"""Worker threads for `def` handlers, and the event loop for `async def`. They ask the engine; it never calls them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any

from awoke._native import HookJob, Job, LaneAssignment, Notifier, Scheduler
from awoke.errors import AwokeError
from awoke.observe.loop_watch import LoopWatch
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.process.context import RunnableApp
from awoke.runtime.watch.stacks import Unfinished, stack_of, stack_of_coroutine
from awoke.waiting.handles import IN_JOB
from awoke.waiting.lone_step import is_idle, run_lone_step
from awoke.waiting.own_loop import run_loop
from awoke.waiting.raised import report

logger = logging.getLogger(__name__)


class Worker:
    """A thread that runs jobs, until the scheduler closes.

    1. Wait for a job or a hook (blocked in the engine, without the GIL).
    2. Run it through its route's executor, which gives it back.
    """

    def __init__(self, name: str, scheduler: Scheduler, executors: Mapping[int, Executor]) -> None:
        self._scheduler = scheduler
        self._executors = executors
        self.running: Job | HookJob | None = None
        """The job or hook that runs now. Any thread may read it."""
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self.thread.start()

    def join(self, timeout_s: float) -> bool:
        """Waits for its end; returns whether it came within the time."""
        self.thread.join(timeout_s)
        return not self.thread.is_alive()

    def unfinished(self) -> list[Unfinished]:
        """Returns the code that runs now, if any does. Does not block. Any thread."""
        work = self.running
        return [] if work is None else [Unfinished(described(work, self._executors), stack_of(self.thread))]

    def _run(self) -> None:
        while (work := self._scheduler.next()) is not None:
            executor = self._executors[work.route_number]
            if not isinstance(work, LaneAssignment):
                self.running = work
            try:
                if isinstance(work, Job):
                    executor.run_job(work)
                elif isinstance(work, LaneAssignment):
                    executor.assign_lanes(work)
                else:
                    executor.run_hook(work)
            except BaseException as error:
                report(error, logger, "%s failed outside of user code", type(work).__name__)
            self.running = None
            del work  # Dropped now: a job that is over is to be freed before the next one comes.


class AsyncWorker:
    """A thread with an event loop, on which jobs of `async def` handlers run as tasks: at most `jobs_max` at once.

    1. When the notifier is notified, a timer fires or a task ends, take jobs and hooks up to `jobs_max`.
    2. Run each as a task, through its route's executor, which gives it back.
    3. When the scheduler has closed and the last task has ended, report the end of the jobs; async shutdown
       functions may
       still run.
    4. End the loop when `finish` was called, too.

    `on_end` is called with what user code ends the loop with, as a `SystemExit` of a task of its own.
    """

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        executors: Mapping[int, Executor],
        jobs_max: int,
        on_end: Callable[[BaseException], object],
        watch: LoopWatch | None = None,
    ) -> None:
        self._watch = watch
        self._scheduler = scheduler
        self._executors = executors
        self._jobs_max = jobs_max
        self._notifier = Notifier()
        self._tasks: dict[asyncio.Task[None], Job | HookJob] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_serving = threading.Event()
        self._has_no_jobs = threading.Event()
        self._is_to_end = self._has_ended = False
        self._on_end = on_end
        self.thread = threading.Thread(target=self._run_loop, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread; returns when its loop runs. Raises an `OSError` where the system has no more files."""
        self._loop = asyncio.new_event_loop() if self._watch is None else self._watch.new_loop()
        self.thread.start()
        self._is_serving.wait()

    def call(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        """Calls an async function on the loop. Does not block. Any thread."""
        return asyncio.run_coroutine_threadsafe(function(), self._loop)

    def join_jobs(self, timeout_s: float) -> bool:
        """Waits for the last job, after the scheduler was closed; returns whether it ended within the time. Blocks."""
        return self._has_no_jobs.wait(timeout_s)

    def running(self) -> list[Job | HookJob]:
        """Returns the jobs and hooks that run now. Does not block. Any thread."""
        return list(self._tasks.values())

    def unfinished(self) -> list[Unfinished]:
        """Returns the code that runs now, or waits. Does not block. Any thread."""
        tasks = list(self._tasks.items())
        return [
            Unfinished(described(work, self._executors), stack_of_coroutine(task.get_coro())) for task, work in tasks
        ]

    def finish(self) -> None:
        """Lets the loop end after its last job. Does not block."""
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._finish)

    def join(self, timeout_s: float) -> bool:
        """Waits for its end; returns whether it came within the time. Blocks."""
        self.thread.join(timeout_s)
        return not self.thread.is_alive()

    def _run_loop(self) -> None:
        try:
            if self._watch is not None:
                self._watch.start()
            self._loop.add_reader(self._notifier.fileno(), self._on_notified)
            self._loop.call_soon(self._begin)
            run_loop(self._loop, lambda: self._has_ended, self._on_end)
        finally:
            if self._watch is not None:
                self._watch.stop()
            self._is_serving.set()
            self._has_no_jobs.set()

    def _begin(self) -> None:
        self._is_serving.set()
        self._take()

    def _end_if_over(self) -> None:
        if self._is_to_end and self._has_no_jobs.is_set():
            self._has_ended = True
            self._loop.remove_reader(self._notifier.fileno())
            self._set_timer(None)
            self._loop.stop()

    def _finish(self) -> None:
        self._is_to_end = True
        self._end_if_over()

    def _on_notified(self) -> None:
        self._notifier.clear()
        was_idle = is_idle(self._loop)
        self._take()
        if was_idle:
            run_lone_step(self._loop)

    def _take(self) -> None:
        while len(self._tasks) < self._jobs_max:
            work, seconds, is_closed = self._scheduler.next_or_notify(self._notifier)
            if is_closed:
                if not self._tasks:
                    self._has_no_jobs.set()
                    self._end_if_over()
                return
            if work is None:
                self._set_timer(seconds)
                return
            if isinstance(work, LaneAssignment):
                self._executors[work.route_number].assign_lanes(work)
                continue
            context = self._executors[work.route_number].new_context()
            task = self._loop.create_task(self._run(work), context=context)
            self._tasks[task] = work
            task.add_done_callback(self._on_done)

    async def _run(self, work: Job | HookJob) -> None:
        IN_JOB.set(True)
        executor = self._executors[work.route_number]
        if isinstance(work, Job):
            await executor.process(work)
        else:
            await executor.call_hook(work)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a job's task failed outside of user code", exc_info=error)
        self._take()

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._take)


def described(work: Job | HookJob, executors: Mapping[int, Executor]) -> str:
    """Returns the name of the code that works on a job or a hook, with the place of that."""
    name, place = executors[work.route_number].name, f"{work.topic}[{work.partition}]"
    if isinstance(work, HookJob):
        return f"{name}.{work.name} of {place}"
    with contextlib.suppress(AwokeError):  # It has ended meanwhile.
        return f"{name}, at {place} offset {work.first_offset}"
    return f"{name}, at {place}"


def workers_of(app: RunnableApp) -> int:
    """Returns the number of worker threads of an app."""
    jobs = [route.concurrency.jobs for route in app.all_routes if not route.is_async]
    return app.settings.workers or max(4, min(64, max(jobs, default=1)))


def async_jobs_of(app: RunnableApp) -> int:
    """Returns the most jobs of `async def` handlers at once."""
    has_lanes = any(route.is_async and route.lanes is not None for route in app.all_routes)
    return app.settings.async_jobs_max or (10_000 if has_lanes else 100)
