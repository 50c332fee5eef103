"""Records that a job begins, so that a crash of the process is recognised, and exhausts messages that cause crashes."""

from __future__ import annotations

from awoke._native import HookJob, Job, Partition
from awoke.declare.routing import Route
from awoke.errors import AwokeError, FencedError, ProcessDied
from awoke.observe.events import CrashRecordFailed, PartitionCareful
from awoke.runtime.failures.crashes import Careful, Commit, CrashCheck, CrashRecords
from awoke.runtime.failures.recovery import Recovery
from awoke.runtime.process.context import CommitContext
from awoke.waiting.drive import until


class CrashGuard:
    """Asks the crash records of one route before each job. For routes with a dead letter topic. Any thread."""

    def __init__(self, route: Route, context: CommitContext, recovery: Recovery) -> None:
        self._route, self._context, self._recovery = route, context, recovery
        self._records = CrashRecords(route, self._on_careful)

    async def may_run(self, job: Job) -> bool:
        """Records the attempt, and waits until the broker holds the record.

        Returns false where the job is not to run and has been given back: its partition is lost, or its first
        message has killed the process too often and is exhausted.
        """
        try:
            check = await self._check(job)
            if check.commit is not None:
                await until(check.commit)
        except FencedError:
            job.retry(0.0)  # The partition was given back before the job ran: its next owner processes the messages.
            return False
        except AwokeError as failed:
            # The record could not be written or read. That is no fault of the message, which is processed all the same.
            self._context.events.emit(
                CrashRecordFailed(handler=self._route.name, topic=job.topic, partition=job.partition, error=failed)
            )
            return True
        if not self._records.is_exhausted(check):
            return True
        await self._recovery.exhaust(job, check.deaths, died(check))
        return False

    def after(self, hook: HookJob) -> Partition | None:
        """Removes the record of an assignment that ends; returns the partition where there was one, for the last
        commit."""
        return self._records.after(hook)

    async def _check(self, job: Job) -> CrashCheck:
        commit = self._commit()
        return CrashCheck(None, 0) if commit is None else await self._records.before(job, commit)

    def _commit(self) -> Commit | None:
        """Returns what brings a record to the broker; None before the member has joined."""
        transactions, member = self._context.transactions, self._context.member
        if transactions is not None and self._route.is_exactly_once:
            return transactions.commit
        return None if member is None else lambda _: member.commit()

    def _on_careful(self, careful: Careful) -> None:
        text = (
            "a process that had begun this message died before its next commit; to find a message that kills its "
            f"process, the messages before offset {careful.until_offset} are taken one by one, each with a commit"
        )
        self._context.events.emit(
            PartitionCareful(group=self._context.group, handler=self._route.name, **careful._asdict(), text=text)
        )


def died(check: CrashCheck) -> ProcessDied:
    """Returns the error for the dead letter of a message that killed its process."""
    return ProcessDied(f"the process died {check.deaths} times in a row at this message")
