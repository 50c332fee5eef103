"""Exactly once: results and offset of a job are one transaction, and no worker waits for its end.

The job ends when the transaction is committed. Where the broker refuses a result, the transaction does not say
whose it was: the job is tried again in smaller parts until the message is found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container
from functools import partial
from typing import Any

from awoke._native import Job, Message, PendingStep
from awoke.declare.handlers import check_ran, is_unfinished
from awoke.declare.routing import Route
from awoke.errors import AwokeError, ClosedError, FencedError, ProducerFenced
from awoke.observe.ledger import acting
from awoke.runtime.failures.recovery import Recovery, narrow
from awoke.runtime.jobs.instances import PerBatch
from awoke.runtime.jobs.message_loop import NOTHING, Send, Strategy, unsent
from awoke.runtime.jobs.outputs import Answer, Outputs, add_answer
from awoke.runtime.jobs.results import End
from awoke.runtime.process.context import OutputContext
from awoke.runtime.process.refusals import TRANSACTIONAL_ID, Refusals
from awoke.runtime.process.transactions import TransactionEntry, Transactions
from awoke.waiting.drive import drive_later, until
from awoke.waiting.handles import call_back


class JobTransactions:
    """Commits the jobs of one route, each in a transaction with what it sends. Any thread."""

    def __init__(self, transactions: Transactions, recovery: Recovery, refusals: Refusals, end: End) -> None:
        self._transactions, self._recovery, self._refusals, self._end = transactions, recovery, refusals, end

    def begin(self, job: Job) -> TransactionEntry:
        """Returns an entry for what a job sends. A job that is tried again is shortened."""
        narrow(job)
        return self._transactions.entry()

    def submit(self, job: Job, entry: TransactionEntry) -> None:
        """Has the transaction committed: the job ends with that, and its worker goes on."""
        if job.is_of_lanes:
            job.leave_slot(True)
        try:
            committed = entry.submit(job, None)
        except (ClosedError, FencedError):
            job.retry(0.0)  # The next owner of the partition does it again.
        else:
            call_back(committed, partial(self._on_answered, job))

    def _on_answered(self, job: Job, committed: PendingStep) -> None:
        """Ends a job with its transaction: on a thread of awoke's that runs no user code.

        No flow where it is committed: a flow for each job costs a tenth of a route with many lanes.
        """
        try:
            committed.result()
        except (ClosedError, FencedError):
            job.retry(0.0)
        except ProducerFenced as error:
            self._recovery.end_app(job, error)
        except Exception as error:
            drive_later(self._recovery.failed(job, error, is_unclear=job.remaining > 1))
        else:
            self._refusals.allow(TRANSACTIONAL_ID)
            self._end(job, None)


class ExactlyOnce(Strategy[TransactionEntry]):
    """The strategy of a route with a function: results are kept until all messages are handled, or one fails."""

    def __init__(self, route: Route, context: OutputContext, transactions: JobTransactions) -> None:
        self._name, self._tables = route.name, route.written_tables
        self._output, self._is_traced, self._transactions = route.output, context.tracer is not None, transactions
        self._outputs = Outputs(route, context.tracer)

    def begin(self, job: Job) -> tuple[TransactionEntry, Container[type], Send]:
        """Returns an entry for the results of a job."""
        entry = self._transactions.begin(job)
        if self._tables:
            current = acting.get()
            assert current is not None
            current.rows = entry.rows_of(self._tables, job)
        if not entry.is_direct or self._output is None:
            return entry, NOTHING, unsent
        return entry, self._outputs.plain, partial(entry.add_result, self._output)

    def make(self, message: Message[Any], result: Any) -> Answer | None:
        """Makes the records of a result; within a span they carry on its trace."""
        return self._outputs.answer(message, result)

    def take(self, entry: TransactionEntry, message: Message[Any], result: Any) -> None:
        """Adds what is more than a value, or passes middleware; within a span it was made before."""
        if self._output is None:
            if is_unfinished(type(result)):  # type: ignore[arg-type]
                check_ran(result, self._name)
            return
        answer = result if self._is_traced else self.make(message, result)
        if answer is not None:
            add_answer(entry, self._output, answer)

    async def on_called(self, entry: TransactionEntry, job: Job, done_offset: int | None) -> bool:
        """Returns False: the job ends with its transaction."""
        self._transactions.submit(job, entry)
        return False

    async def on_failed(
        self, entry: TransactionEntry, job: Job, done_offset: int | None, failed_offset: int | None
    ) -> None:
        """Commits the messages before the one that failed, with their results."""
        if done_offset is not None:
            current = acting.get()
            if self._tables and current is not None and failed_offset is not None:
                for rows in (current.rows or {}).values():
                    rows.forget(failed_offset)
            with contextlib.suppress(AwokeError):  # All of it is tried again, then.
                await until(entry.submit(job, done_offset))


class ConsumerExactlyOnce:
    """Calls the consumers of a route, which send within their own transactions; the rest of a job is one, too."""

    def __init__(self, route: Route, per_batch: PerBatch, transactions: JobTransactions) -> None:
        self._tables, self._has_lanes = route.written_tables, route.lanes is not None
        self._per_batch, self._transactions = per_batch, transactions

    async def run(self, job: Job) -> bool:
        """Calls the consumer; returns whether the job is over with that. Raises what the consumer raises."""
        entry = self._transactions.begin(job)
        if self._tables:
            current = acting.get()
            assert current is not None
            current.rows = entry.rows_of(self._tables, job)
            if self._has_lanes:
                current.keys = {message.raw_key for message in job.batch()}
        if not await self._per_batch.run(job):
            return False
        if not job.remaining:
            return True  # All of it was committed within the consumer's own transactions.
        self._transactions.submit(job, entry)
        return False
