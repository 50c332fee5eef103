"""Exactly once: results and offset of a job are one transaction, and no worker waits for its end.

The job ends when the transaction is committed. Where the broker refuses a result, the transaction does not say
whose it was: the job is tried again in smaller parts until the message is found.
"""

from __future__ import annotations

import contextlib
from typing import Any

from awoke._native import Job, Message, PendingStep
from awoke.errors import AwokeError, ClosedError, FencedError, ProducerFenced
from awoke.observe.loops import message_loop
from awoke.runtime.failures.recovery import Recovery, narrow
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.lent import LentBatches, detach_kept
from awoke.runtime.jobs.outputs import NOTHING, Outputs, add_answer, called
from awoke.runtime.jobs.strategies.per_batch import PerBatch
from awoke.runtime.process.context import OutputContext
from awoke.runtime.process.refusals import TRANSACTIONAL_ID, Refusals
from awoke.runtime.process.transactions import TransactionEntry, Transactions
from awoke.waiting.drive import drive_later, until
from awoke.waiting.handles import call_back


class ExactlyOnce:
    """Processes jobs in transactions. What a job sends is collected by `_collect`, or by the consumer class itself."""

    def __init__(
        self,
        calls: HandlerCalls,
        context: OutputContext,
        source: LentBatches | PerBatch,
        transactions: Transactions,
        recovery: Recovery,
        refusals: Refusals,
    ) -> None:
        self._route, self._context, self._source, self._transactions = calls.route, context, source, transactions
        self._is_async, self._is_typed = calls.is_async, calls.is_typed
        self._recovery, self._refusals = recovery, refusals
        self._outputs = Outputs(calls.route, context.tracer)
        # Within its span, where there is one, the records of a message are made, too: they carry on its trace.
        self._function = called(calls, context.tracer, None if context.tracer is None else self._outputs.answer)

    async def run(self, job: Job) -> bool:
        """Calls user code, and has the transaction committed; returns whether the job is over with that.

        Raises what user code raises.
        """
        entry = self._transactions.entry()
        narrow(job)
        if isinstance(self._source, LentBatches):
            await self._collect(job, entry, self._source)
        elif not await self._source.run(job):
            return False
        elif not job.remaining:
            return True  # All of it was committed within the consumer's own transactions.
        self._submit(job, entry)
        return False

    @message_loop
    async def _collect(self, job: Job, entry: TransactionEntry, batches: LentBatches) -> None:
        """Calls the function for each message; its results are kept until all messages are processed, or one fails."""
        function, is_async, is_typed = self._function, self._is_async, self._is_typed
        output = self._route.output
        assert output is not None
        plain = self._outputs.plain if entry.is_direct else NOTHING
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch, lease = batches.of(job)
        try:
            for message in () if batch is None else job.each(batch):
                if is_typed:
                    message.value  # noqa: B018
                if (result := function(message)) is not None:
                    if is_async:
                        result = await result
                    if type(result) in plain:
                        entry.add_result(output, message, result)
                    elif result is not None:
                        self._add_others(entry, output, message, result)
                done = message
        except BaseException:
            assert batch is not None
            batch.detach()
            if done is not None:
                with contextlib.suppress(AwokeError):  # All of it is tried again, then.
                    await until(entry.submit(job, done.offset))
            raise
        batch = message = done = result = None
        detach_kept(lease)

    def _add_others(self, entry: TransactionEntry, output: str, message: Message[Any], result: Any) -> None:
        """Adds what is more than a value, or passes middleware; within a span its records were made before."""
        answer = self._outputs.answer(message, result) if self._context.tracer is None else result
        if answer is not None:
            add_answer(entry, output, answer)

    def _submit(self, job: Job, entry: TransactionEntry) -> None:
        """Has the transaction committed: the job ends with that, and its worker goes on."""
        if job.is_of_lanes:
            job.leave_slot(True)
        try:
            committed = entry.submit(job, None)
        except (ClosedError, FencedError):
            job.retry(0.0)  # The next owner of the partition does it again.
        else:
            call_back(committed, lambda committed: self._end(job, committed))

    def _end(self, job: Job, committed: PendingStep) -> None:
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
            self._recovery.complete(job)
