"""Runs the code of one route without brokers, by the strategies and the recovery that run it in a process.

1. Make what functions of `Depends` return for the process, and call the hook `assigned` of each partition.
2. Run the job that is due first. Where none is due, go on to the time at which one is.
3. End when nothing waits, the app stops, or the time is up. Call the hook `revoked`, and close what was made.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import cast

from awoke._native import HookJob, Job, LaneAssignment
from awoke.runtime.jobs.executor import Executor
from awoke.runtime.jobs.own_thread import executor_of
from awoke.testing.memory.job import MemoryHook, MemoryJob, MemoryLanes
from awoke.testing.memory.partition import MemoryPartition
from awoke.testing.memory.process import MemoryProcess
from awoke.testing.messages import MessageParts
from awoke.waiting.drive import within

END_S = 60.0
"""A job whose answers are all there ends on awoke's callback thread, within this time."""


class MemoryRun:
    """One run of a route. One thread, or one task."""

    def __init__(self, process: MemoryProcess, messages: Mapping[int, Sequence[MessageParts]], limit_s: float) -> None:
        self._process, self._route, self._limit_s = process, process.route, limit_s
        topic = str(self._route.topic)
        self.partitions = [MemoryPartition(topic, number, each) for number, each in sorted(messages.items())]
        self.now_s = 0.0
        """The time since the beginning, in seconds: it passes where messages wait only."""
        self.place: tuple[int, int] | None = None
        """Partition and first offset of the job that runs."""
        self._pending: list[MemoryJob] = []
        """Jobs whose code has returned, and which wait for the results of others."""
        self._executor: Executor = executor_of(process, self._route)

    async def run(self) -> None:
        """Runs all. A flow, for a thread or for an event loop; blocks as long as user code does."""
        dependencies = self._process.dependencies
        with self._process.running():
            try:
                await dependencies.open_here()
                self._executor.bind()
                await self._run_partitions()
            finally:
                self._executor.close(time.monotonic())
                await dependencies.close_here()

    async def _run_partitions(self) -> None:
        try:
            for each in self.partitions:
                self._split(each)
                await self._hook("assigned", each)
            while (found := self._next()) is not None:
                await self._run_job(found)
        finally:
            for each in self.partitions:
                await self._hook("revoked", each)
                each.is_current = False

    def _split(self, partition: MemoryPartition) -> None:
        by = self._route.concurrency.by
        lanes: Sequence[object] | None = None
        if by == "key":
            lanes = [each.parts.key for each in partition.entries]
        elif by == "nothing":
            lanes = [None] * len(partition.entries)
        elif by == "route":
            assignment = MemoryLanes(partition, self._route.number)
            self._executor.assign_lanes(cast("LaneAssignment", assignment))
            lanes = assignment.numbers
        partition.split(lanes)

    async def _hook(self, name: str, partition: MemoryPartition) -> None:
        hook = cast("HookJob", MemoryHook(name, partition, self._route.number))
        if self._route.is_async:
            await within(self._executor.new_context(), self._executor.call_hook(hook))
        else:
            self._executor.run_hook(hook)
        partition.apply_seek()

    def _next(self) -> MemoryPartition | None:
        """Returns the partition that is due first, and lets the time pass until then; None if the run is over."""
        if self._process.stopped_by is not None:
            return None
        places = enumerate(self.partitions)
        due = [(*when, place) for place, each in places if (when := each.due()) is not None]
        due_s, _, place = min(due, default=(math.inf, 0, 0))
        if due_s > self._limit_s or not due:
            return None
        self.now_s = max(self.now_s, due_s)
        return self.partitions[place]

    async def _run_job(self, partition: MemoryPartition) -> None:
        unit, taken = partition.take(self._route.batch.max_messages)
        self.place = (partition.number, taken[0].offset)
        job = MemoryJob(partition, unit, taken, lambda: self.now_s, self._route.number)
        if self._route.is_async:
            await within(self._executor.new_context(), self._executor.process(cast("Job", job)))
        else:
            self._executor.run_job(cast("Job", job))
        self._pending += job.unended()
        self._settle()
        self.place = None
        partition.apply_seek()

    def _settle(self) -> None:
        """Waits for the end of the jobs that have all answers: all, but for those whose results wait their turn."""
        for job in list(self._pending):
            first = job.assignment().first_waiting() if self._route.is_ordered else math.inf
            if job.last_ordinal < first:
                if not job.ended.wait(END_S):
                    raise TimeoutError(
                        f"a job of {job.topic}[{job.partition}] did not end; report it as a bug of awoke"
                    )
                self._pending.remove(job)
