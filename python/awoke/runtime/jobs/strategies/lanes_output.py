"""A function with an output, where several jobs of a partition run at once: no worker waits for an acknowledgement.

Results leave as they come; those of one lane leave in order, because the job keeps its lanes until all of its results
are acknowledged. It leaves its slot to others before.
"""

from __future__ import annotations

from functools import partial

from awoke._native import Job, Results
from awoke.declare.routing import Route
from awoke.errors import AwokeError
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.lent import LentBatches
from awoke.runtime.jobs.outgoing import End
from awoke.runtime.jobs.strategies.with_output import WithOutput
from awoke.runtime.process.context import OutputContext
from awoke.waiting.drive import drive_later
from awoke.waiting.handles import call_back


class LanesOutput(WithOutput):
    """Calls the function of a route, and sends what it returns; the job ends with the last acknowledgement."""

    def __init__(
        self, route: Route, calls: HandlerCalls, context: OutputContext, batches: LentBatches, end: End
    ) -> None:
        super().__init__(route, calls, context, batches)
        self._end = end

    async def _on_called(self, job: Job, results: Results) -> bool:
        self._end_when_answered(job, results)
        return False

    async def _on_failed(self, job: Job, results: Results, done_offset: int | None) -> None:
        """The messages before the one that failed become a job of their own, which ends with their results."""
        part = None if done_offset is None else job.split_off(done_offset)
        if part is not None:
            self._end_when_answered(part, results)

    def _end_when_answered(self, job: Job, results: Results) -> None:
        """Has a job leave its slot, and end when all results are answered. Does not block."""
        job.leave_slot(len(results) > 0)
        if len(results) > 0:
            call_back(results, partial(self._on_answered, job))
        else:
            self._end(job, None)

    def _on_answered(self, job: Job, results: Results) -> None:
        if results.result():
            self._end(job, None)
        else:
            drive_later(self._check(job, results))

    async def _check(self, job: Job, results: Results) -> None:
        try:
            await self._acknowledgements.check(job, results)
        except AwokeError as refused:
            self._end(job, refused)
        else:
            self._end(job, None)
