"""Runs every hook and batch of a consumer on one thread: for resources that only the thread which opened them may use.

The thread of an assignment:
1. wait until a worker hands over a hook or a job of the assignment;
2. run it and tell the worker, which waits for it;
3. end after the last hook, or after the last job when the assignment has ended without one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from awoke._native import HookJob, Job
from awoke.declare.routing import Route
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.process.assigned import LAST_HOOKS, Key, key_of, owner_of
from awoke.runtime.process.context import RouteContext

Work = TypeVar("Work", Job, HookJob)


class OwnThread:
    """A thread that runs the calls that workers hand over, one after the other."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], object], Future[None]] | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def run(self, function: Callable[[Work], object], work: Work) -> None:
        """Calls the function on this thread and waits for its end. Blocks as long as user code does."""
        ended: Future[None] = Future()
        self._calls.put((lambda: function(work), ended))
        ended.result()

    def finish(self) -> None:
        """Lets the thread end after what was handed over. Does not block."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            function, ended = call
            del call
            try:
                function()
            except BaseException as error:  # An error of awoke's own: the executor catches those of user code.
                del function
                ended.set_exception(error)
            else:
                # Dropped now: a job that is over is to be freed before the next one comes.
                del function
                ended.set_result(None)
            del ended


class OwnThreadExecutor(Executor):
    """As `Executor`, for routes with `own_thread`: a worker hands over its work and waits."""

    def __init__(self, context: RouteContext, route: Route) -> None:
        super().__init__(context, route)
        self._threads: dict[Key, OwnThread] = {}
        self._starting = threading.Lock()
        """Guards `_threads`."""

    def run_job(self, job: Job) -> None:
        """Processes a batch on the thread of its assignment, and gives the job back."""
        try:
            thread = self._thread_of(job)
        except RuntimeError as error:  # The system gives the process no more threads.
            self._recovery.end_app(job, error)
            return
        key, assignment = key_of(job), job.assignment()
        thread.run(super().run_job, job)
        self._end_without_hook(key, is_current=assignment.is_current)

    def run_hook(self, hook: HookJob) -> None:
        """Runs a hook on the thread of its assignment, and gives the partition back."""
        key, assignment, is_last = key_of(hook), hook.assignment(), hook.name in LAST_HOOKS
        try:
            # Without a thread there is no instance: the hook is skipped, which needs no thread.
            thread = self._find(key) if is_last else self._thread_of(hook)
        except RuntimeError as error:
            self._context.stop_app(error)
            hook.finish()
            return
        if thread is None:
            super().run_hook(hook)
            return
        thread.run(super().run_hook, hook)
        if is_last:
            self._end_thread(key)
        else:
            self._end_without_hook(key, is_current=assignment.is_current)

    def close(self, deadline_s: float) -> list[threading.Thread]:
        """Ends the threads whose last hook never came; returns those that still run user code at the deadline."""
        with self._starting:
            threads, self._threads = list(self._threads.values()), {}
        for each in threads:
            each.finish()
        for each in threads:
            each.thread.join(max(0.0, deadline_s - time.monotonic()))
        return [each.thread for each in threads if each.thread.is_alive()]

    def threads(self) -> list[threading.Thread]:
        """Returns the threads of the assignments. Does not block."""
        with self._starting:
            return [each.thread for each in self._threads.values()]

    def _find(self, key: Key) -> OwnThread | None:
        with self._starting:
            return self._threads.get(key)

    def _thread_of(self, work: Job | HookJob) -> OwnThread:
        key, owner = key_of(work), owner_of(work)
        with self._starting:
            thread = self._threads.get(key)
            if thread is None:
                thread = OwnThread(f"{owner}-own_thread")
                started_at = f"own_thread=True of {self._route.name}"
                self._context.ledger.write_down(thread.thread, owner, work.generation, started_at)
                thread.thread.start()
                self._threads[key] = thread
            return thread

    def _end_without_hook(self, key: Key, *, is_current: bool) -> None:
        """Ends the thread of an assignment that has ended and whose consumer was told: no last hook comes."""
        if not is_current and key not in self._instances:
            self._end_thread(key)

    def _end_thread(self, key: Key) -> None:
        with self._starting:
            thread = self._threads.pop(key, None)
        if thread is not None:
            thread.finish()
            thread.thread.join()


def executor_of(context: RouteContext, route: Route) -> Executor:
    """Returns the executor of a route with `def` functions."""
    return (OwnThreadExecutor if route.has_own_thread else Executor)(context, route)
