"""Waits until everything that a job has sent is acknowledged, and finds the first result that was refused."""

from __future__ import annotations

import contextlib
from collections import deque

from awoke._native import Job, Results
from awoke.declare.routing import Route
from awoke.errors import AwokeError, DeliveryFailed, FencedError
from awoke.payloads.message import Record
from awoke.runtime.jobs.alone import is_refused_in_company
from awoke.runtime.jobs.outputs import Sent, produce
from awoke.runtime.process.context import OutputContext
from awoke.waiting.drive import is_driven, until


class Acknowledgements:
    """The acknowledgements of one route's results. Any thread."""

    def __init__(self, route: Route, context: OutputContext) -> None:
        self._route, self._context = route, context

    async def wait(self, job: Job, results: Results) -> None:
        """Waits until all results are acknowledged.

        Raises the first refusal, whose message is then the job's first.
        """
        if not (is_driven() and results.wait()):
            await self.check(job, results)

    async def check(self, job: Job, results: Results) -> None:
        """As `wait`, one by one."""
        refused = await self.refused(results, most=1)
        if not refused:
            return
        [(offset, error)] = refused
        del refused
        with contextlib.suppress(FencedError):
            job.done_before(offset)
        try:
            raise error
        finally:
            del error  # A kept exception keeps this frame.

    async def refused(self, results: Results, most: int | None = None) -> list[tuple[int, AwokeError]]:
        """Waits for the results one by one; returns the offsets of messages whose results are refused, and why.

        After `most` of them (None: all) it waits for no more.
        """
        is_alone = False
        refused: list[tuple[int, AwokeError]] = []
        sent: deque[Sent] = deque(results.take())
        while sent and len(refused) != most:
            each = sent.popleft()
            try:
                is_alone = await self._is_sent_alone(each, is_alone)
            except AwokeError as error:
                refused.append((each[0], error))
        # A kept exception keeps this frame: not the handles, and their client.
        sent.clear()
        each = None  # type: ignore[assignment]
        return refused

    async def _is_sent_alone(self, sent: Sent, is_alone: bool) -> bool:
        """Waits for one result, which is sent again by itself where others may be why it was refused; returns whether.

        With `is_alone` one before it was: this one follows it, so that the last result of a key stays the last.
        """
        try:
            await until(sent[1])
        except DeliveryFailed as refused:
            if not is_refused_in_company(refused):
                raise
            is_alone = True
        if is_alone:
            record = Record(*sent[2]) if type(sent[2]) is tuple else sent[2]
            await until(produce(self._context.alone, self._route, record))
        return is_alone
