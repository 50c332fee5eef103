"""Finds jobs that run longer than their route allows: event, stack in the log, bad health until they end.

The thread, which exists only where a route sets `max_processing_s`:
1. wait until a job begins, or the earliest deadline of those that run;
2. report those whose deadline has passed, once each;
3. end when the app stops.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from awoke._native import Job, Signal
from awoke.observe.events import Events, JobSlow
from awoke.runtime.extension import Extension
from awoke.runtime.watch.stacks import stack_of, stack_of_coroutine
from awoke.text.durations import duration
from awoke.waiting.clock import monotonic_s

logger = logging.getLogger(__name__)

ROUNDING_S = 1e-6
"""A deadline has passed when it is nearer than this: sums of floating point are not exact."""


class WatchedJob(NamedTuple):
    """A job that runs now."""

    handler: str
    topic: str
    partition: int
    offset: int
    began_s: float
    limit_s: float
    thread: threading.Thread
    task: asyncio.Task[Any] | None

    def stack(self) -> str:
        """Returns the stack of the job as text."""
        return stack_of(self.thread) if self.task is None else stack_of_coroutine(self.task.get_coro())


class OverdueWatch(Extension):
    """Watches the jobs of routes that have a limit. Any thread may call everything here."""

    def __init__(self, events: Events, is_needed: Callable[[], bool] = lambda: True) -> None:
        self._events, self._is_needed = events, is_needed
        self._lock = threading.Lock()
        self._changed = Signal()
        self._running: dict[int, WatchedJob] = {}
        self._overdue: set[int] = set()
        self._wait_until_s: float | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._watch, name="awoke-overdue", daemon=True)

    def start(self) -> None:
        """Starts the thread, where a job may exceed a limit."""
        if self._is_needed():
            self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Ends and joins the thread. Blocks while it writes a stack, at most."""
        self._is_closed = True
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def begin(self, handler: str, job: Job, limit_s: float, task: asyncio.Task[Any] | None = None) -> int:
        """Notes that a job begins on the calling thread; returns the number to end it with. Does not block."""
        running = WatchedJob(
            handler,
            job.topic,
            job.partition,
            job.batch().first_offset,
            monotonic_s(),
            limit_s,
            threading.current_thread(),
            task,
        )
        number = id(job)
        with self._lock:
            self._running[number] = running
            # The watch is woken only if it would sleep past this job's deadline: not once for each job.
            is_earlier = self._wait_until_s is None or running.began_s + limit_s < self._wait_until_s
        if is_earlier:
            self._changed.set()
        return number

    def end(self, number: int) -> None:
        """Notes that a job has ended. Does not block."""
        with self._lock:
            self._running.pop(number, None)
            self._overdue.discard(number)

    def overdue(self) -> list[WatchedJob]:
        """Returns the jobs that exceed their limit now. Does not block."""
        with self._lock:
            return [self._running[number] for number in self._overdue]

    def reasons(self) -> Iterator[str]:
        """Names the jobs that exceed their limit now. Does not block."""
        for each in self.overdue():
            ran_s = monotonic_s() - each.began_s
            at = f"{each.topic}[{each.partition}] offset {each.offset}"
            yield f"{each.handler} works on {at} for {duration(ran_s)}, allowed are {duration(each.limit_s)}"

    def _watch(self) -> None:
        while (late := self._wait()) is not None:
            for running in late:
                ran_s = monotonic_s() - running.began_s
                self._events.emit(
                    JobSlow(
                        handler=running.handler,
                        topic=running.topic,
                        partition=running.partition,
                        offset=running.offset,
                        ran_s=round(ran_s, 3),
                        limit_s=running.limit_s,
                    )
                )
                place = f"{running.topic}[{running.partition}] offset {running.offset}"
                stack = running.stack()
                logger.error("%s has worked on %s for %.1f s, at:\n%s", running.handler, place, ran_s, stack)

    def _wait(self) -> list[WatchedJob] | None:
        """Waits for jobs whose deadline passes, and returns them; None when closed."""
        while not self._is_closed:
            self._changed.clear()
            with self._lock:
                now_s = monotonic_s()
                waiting = {number: each for number, each in self._running.items() if number not in self._overdue}
                late = [number for number, each in waiting.items() if each.began_s + each.limit_s <= now_s + ROUNDING_S]
                if late:
                    self._overdue.update(late)
                    return [waiting[number] for number in late]
                ends_s = [each.began_s + each.limit_s for each in waiting.values()]
                self._wait_until_s = min(ends_s, default=None)
                left_s = None if self._wait_until_s is None else self._wait_until_s - now_s
            self._changed.wait(left_s, recurs=True, is_tracked=True)
        self._changed.leave()
        return None
