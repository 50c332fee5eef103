"""Measures one job, and limits its time: only where metrics are kept, or the route says how long a job may take."""

from __future__ import annotations

import asyncio
import time
from typing import Literal, Protocol

from awoke._native import Job
from awoke.declare.routing import Route
from awoke.observe.metrics.recorder import EndedJob, Recorder
from awoke.runtime.watch.overdue import OverdueWatch

Outcome = Literal["done", "failed", "fenced"]
"""The end of a job, as the metrics count it."""


class WatchContext(Protocol):
    """Where jobs are counted and overdue ones are found."""

    @property
    def overdue(self) -> OverdueWatch: ...
    @property
    def metrics(self) -> Recorder | None: ...


class JobWatch:
    """One job that runs on the calling thread, or as the calling task, from now until `end`."""

    def __init__(self, route: Route, context: WatchContext, job: Job) -> None:
        self._route, self._context = route, context
        self._batch = None if context.metrics is None else job.batch()
        self._began_s = time.perf_counter()
        self._number = None
        if route.max_processing_s is not None:
            task = asyncio.current_task() if route.is_async else None
            self._number = context.overdue.begin(route.name, job, route.max_processing_s, task)

    def end(self, job: Job, outcome: Outcome) -> None:
        """Counts the job. Does not block."""
        route, metrics = self._route, self._context.metrics
        if self._number is not None:
            self._context.overdue.end(self._number)
        if metrics is not None:
            ran_s = time.perf_counter() - self._began_s
            ended = EndedJob(*self._handled(job), job.waited_s, ran_s, outcome)
            metrics.job_ended(route.topic, route.name, ended)

    def _handled(self, job: Job) -> tuple[int, int]:
        """Returns the messages that the job did not leave to a later one, and the bytes of their keys and values."""
        if self._batch is None:
            return 0, 0
        messages = len(self._batch) - job.left
        return messages, self._batch.size_bytes if job.left == 0 else self._batch.pick(range(messages)).size_bytes
