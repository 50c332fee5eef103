"""Runs user code for one route: a function per message, or an instance of a class per topic-partition.

The sync and the async executor differ only in how they call; both report failures to `recovery`. This is where user code
begins and ends: what it raises is caught here and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Literal

from awoke._native import Batch, HookJob, Job, LaneAssignment, Message, Partition, PendingCommit
from awoke._waiting import call_back
from awoke.consumer import current_job
from awoke.errors import AwokeError, ClosedError, FencedError, ProcessDied, ProducerFenced
from awoke.events import CrashRecordFailed, HookFailed, LaneFailed, MessagesExpired, MessagesFiltered, PartitionCareful
from awoke.handlers import check_ran
from awoke.runtime import recovery
from awoke.runtime.crashes import Careful, Commit, CrashRecords, Verdict
from awoke.runtime.exactly_once import Contribution, Transactions
from awoke.runtime.instances import LAST_HOOKS, Instances, Key, key_of, owner_of
from awoke.runtime.outgoing import OrderedOutput, Outgoing, Results, check_delivered
from awoke.runtime.outputs import Sent, answering, contribute, sending
from awoke.runtime.refusals import TRANSACTIONAL_ID
from awoke.runtime.undecodable import Undecodable

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import AppRunner

logger = logging.getLogger(__name__)

ALONE = 2
"""What `getrefcount` says of a batch that only the executor's variable refers to.

Whoever keeps a message (in a list, in an exception's traceback) would keep librdkafka's buffers and client alive with it:
a batch that is referred to beyond its job is detached, which copies it.
"""


class Run:
    """What is measured of one job."""

    def __init__(self, job: Job | None) -> None:
        self._batch = None if job is None else job.batch()
        self.outcome: Literal["done", "failed", "fenced"] = "done"
        self.began_s = time.perf_counter()

    def handled(self, job: Job) -> tuple[int, int]:
        """Returns the messages that the job did not leave to a later one, and the bytes of their keys and values."""
        if self._batch is None:
            return 0, 0
        messages = len(self._batch) - job.left
        return messages, self._batch.size_bytes if job.left == 0 else self._batch.pick(range(messages)).size_bytes


NOT_MEASURED = Run(None)
"""Stands for every job where nobody asked for metrics."""


class Executor:
    """Runs the jobs and hooks of one route. Jobs of different partitions overlap, and of one where the route says so."""

    def __init__(self, server: AppRunner, route: Route) -> None:
        self._server = server
        self._route = route
        self._function = self._traced(sending(server, route))
        self._instances = Instances(server, route)
        self._crashes = CrashRecords(route, self._on_careful) if route.dead_letter is not None else None
        self._answer = self._traced(answering(server, route))
        self._transactions = server.transactions if route.is_exactly_once else None
        self._ordered: dict[tuple[Key, int], OrderedOutput] = {}
        self._assigning = threading.Lock()
        """Held while a hook that failed is tried again."""
        self._making = threading.Lock()
        """Held while an ordered output is made or dropped: several jobs of a partition may want one."""
        self._undecodable = Undecodable()

    def close(self, deadline_s: float) -> list[threading.Thread]:
        """Ends what the executor has started; returns the threads that still run at the deadline."""
        return []

    def threads(self) -> list[threading.Thread]:
        """Returns the threads that run user code for the workers. Does not block."""
        return []

    def assign_lanes(self, assignment: LaneAssignment) -> None:
        """Say which messages keep their order among themselves."""
        lane_of = self._route.concurrency.lane_of
        assert lane_of is not None
        numbers = []
        for message in assignment.batch(self._route.decoder):
            try:
                lane = lane_of(message)
                numbers.append(hash(lane) & MASK)
            except Exception as error:
                numbers.append(hash(message.key) & MASK)
                self._server.app.events.emit(
                    LaneFailed(
                        handler=self._route.name,
                        topic=assignment.topic,
                        partition=assignment.partition,
                        offset=message.offset,
                        error=error,
                    )
                )
        assignment.finish(numbers)

    def run_job(self, job: Job) -> None:
        """Process a batch and give the job back, done or to be tried again. Blocks as long as user code does."""
        with self._watching(job) as run:
            try:
                if (asked := self._server.failures.take(job)) is not None:
                    self._recover(job, recovery.skip(self._server, self._route, job, asked, self._pass_over), asked)
                    return
                if self._crashes is not None and not self._may_run(job):
                    return
                if not self._process(job):
                    return
            except Exception as error:
                run.outcome = "failed"
                self._recover(job, self._fail(job, error), error)
            except BaseException as error:
                run.outcome = "failed"
                self._end_app(job, error)
            else:
                self._complete(job, run)

    def run_hook(self, hook: HookJob) -> None:
        """Run a hook and give the partition back."""
        with self._server.ledger.acting_for(owner_of(hook), hook.generation, hook):
            try:
                if self._route.consumer is not None and not self._instances.is_skipped(hook):
                    outcome = getattr(self._instances.of(hook), hook.name)()
                    if outcome is not None:
                        check_ran(outcome, f"{self._route.name}.{hook.name}")
            except Exception as error:
                self._on_hook_failed(hook, error)
            except BaseException as error:
                self._end_app_in_hook(hook, error)
            finally:
                if hook.name in LAST_HOOKS:
                    self._instances.close_scope(hook)
                    self._forget(hook)
                hook.finish()
                if hook.name not in LAST_HOOKS:
                    self._instances.let_go_of_fenced(hook)
        if hook.name in LAST_HOOKS:
            self._instances.report_leaks(hook)

    def _process(self, job: Job) -> bool:
        """Call user code; whether the job is over with that."""
        if self._transactions is not None:
            return self._process_once(job, self._transactions)
        if self._route.consumer is not None:
            return self._consume(job)
        if self._route.output is None:
            self._call(job)
        elif job.is_of_lanes:
            self._call_and_go_on(job)
            return False
        else:
            self._call_with_output(job)
        return True

    def _call(self, job: Job) -> None:
        function = self._function
        is_typed = self._route.decoder is not None
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = self._batch(job)
        if batch is None:
            return
        try:
            for message in job.each(batch):
                if is_typed:
                    message.value  # noqa: B018 - a value that does not decode is the message's error, not the handler's
                if (result := function(message)) is not None:
                    check_ran(result, self._route.name)
                done = message
        except BaseException:
            mark_done(job, done)
            batch.detach()
            raise
        message = done = result = None
        if getrefcount(batch) > ALONE:
            batch.detach()

    def _call_with_output(self, job: Job) -> None:
        """As `_call`; what the function returns is sent on, and all of it acknowledged before the job is done."""
        sent: deque[Sent] = deque()
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = self._batch(job)
        if batch is None:
            return
        try:
            for message in job.each(batch):
                if self._route.decoder is not None:
                    message.value  # noqa: B018
                if type(result := self._function(message)) is list:
                    sent.extend(result)
                elif result is not None:
                    sent.append(result)
                done = message
        except BaseException:
            batch.detach()
            result = None
            check_delivered(self._server, self._route, job, sent)
            mark_done(job, done)
            raise
        message = done = result = None
        if getrefcount(batch) > ALONE:
            batch.detach()
        del batch  # A kept exception keeps this frame, and the batch with it.
        check_delivered(self._server, self._route, job, sent)

    def _call_and_go_on(self, job: Job) -> None:
        """As `_call_with_output`, where others may work on the partition meanwhile: the job ends with the last answer."""
        outgoing = Outgoing(self._end_outgoing)
        results = self._results(job, outgoing)
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = self._batch(job)
        try:
            for message in () if batch is None else job.each(batch):
                if self._route.decoder is not None:
                    message.value  # noqa: B018
                results.add(message, self._answer(message))
                done = message
        except BaseException:
            assert batch is not None
            batch.detach()
            self._leave_part(job, outgoing, results, done, message)
            # Whoever keeps the exception keeps this frame: not what waits for other messages' results, and their client.
            del outgoing, results
            raise
        message = done = None
        if batch is not None and getrefcount(batch) > ALONE:
            batch.detach()
        results.pass_over_before(job.rest_offset)
        outgoing.seal(job)

    def _process_once(self, job: Job, transactions: Transactions) -> bool:
        """As `_process`; what is sent, and the offset, are one transaction, whose end nobody waits for here."""
        contribution = transactions.contribution()
        recovery.narrow(job)
        if self._route.consumer is None:
            self._collect(job, contribution)
        else:
            if not self._consume(job):
                return False
            if not job.remaining:
                return True  # All of it was committed within the consumer's own transactions.
        self._contribute(job, contribution)
        return False

    def _collect(self, job: Job, contribution: Contribution) -> None:
        """As `_call_with_output`; what the function returns is kept until all are through, or one fails."""
        assert self._route.output is not None
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = self._batch(job)
        if batch is None:
            return
        try:
            for message in job.each(batch):
                if self._route.decoder is not None:
                    message.value  # noqa: B018
                answer = self._answer(message)
                if answer is not None:
                    contribute(contribution, self._route.output, answer)
                done = message
        except BaseException:
            batch.detach()
            if done is not None:
                with contextlib.suppress(AwokeError):  # All of it is tried again, then.
                    contribution.submit(job, done.offset).wait()
            raise
        message = done = None
        if getrefcount(batch) > ALONE:
            batch.detach()

    def _contribute(self, job: Job, contribution: Contribution) -> None:
        """Have it committed: the job ends with that, and its worker goes on."""
        if job.is_of_lanes:
            job.leave_slot(True)
        try:
            committed = contribution.submit(job, None)
        except (ClosedError, FencedError):
            job.retry(0.0)  # Whoever has the partition next does it again.
        else:
            call_back(committed, lambda committed: self._on_committed(job, committed))

    def _on_committed(self, job: Job, committed: PendingCommit) -> None:
        """A transaction is over: on a thread of awoke's that runs no other user code."""
        try:
            committed.result()
        except (ClosedError, FencedError):
            job.retry(0.0)
        except ProducerFenced as error:
            self._end_app(job, error)
        except Exception as error:
            is_unclear = job.remaining > 1
            given_up = self._fail(job, error, is_unclear=is_unclear)
            self._recover_later(job, given_up, error)
        else:
            self._server.refusals.allow(TRANSACTIONAL_ID)
            self._complete(job, NOT_MEASURED)

    def _results(self, job: Job, outgoing: Outgoing) -> Results:
        ordered, places = None, {}
        if self._route.is_ordered:
            ordered = self._ordered_output(job)
            pairs = zip(job.batch().offsets(), job.ordinals(), strict=True)
            places = {offset: ordinal for offset, ordinal in pairs if ordinal is not None}
        return Results(self._server, self._route, outgoing, ordered, places)

    def _ordered_output(self, job: Job) -> OrderedOutput:
        key = (key_of(job), job.epoch)
        with self._making:
            if key not in self._ordered:
                self._ordered[key] = OrderedOutput(self._server, self._route)
            return self._ordered[key]

    def _leave_part(
        self,
        job: Job,
        outgoing: Outgoing,
        results: Results,
        done: Message[Any] | None,
        failed: Message[Any] | None,
    ) -> None:
        """A job has failed in its middle: the messages before end by themselves when their results are acknowledged."""
        part = None if done is None else job.split_off(done.offset)
        if part is not None:
            results.pass_over_before(None if failed is None else failed.offset)
            outgoing.seal(part)

    def _end_outgoing(self, job: Job, error: BaseException | None) -> None:
        """All results of a job are acknowledged, or one was refused: on a thread of awoke's that runs no other user code."""
        if error is None:
            self._complete(job, NOT_MEASURED)
            return
        self._recover_later(job, self._fail(job, error), error)

    def _recover_later(self, job: Job, given_up: recovery.GivenUp | None, error: BaseException) -> None:
        """As `_recover`, when the answer comes."""
        if given_up is not None:
            call_back(given_up.answer, lambda _: self._recover_later(job, self._settle(job, given_up, error), error))

    def _pass_over(self, job: Job) -> None:
        """The job's first message is given up: in an ordered output nobody waits for it."""
        if self._route.is_ordered and job.is_of_lanes:
            self._ordered_output(job).pass_over(job.ordinals()[:1])

    def _consume(self, job: Job) -> bool:
        """Calls the consumer; returns whether it got the batch, and not another one because it sought."""
        instance = self._instances.ready(job)
        if self._instances.is_any_not_ready:
            with self._assigning:
                instance = self._instances.ready(job)  # Another job may have failed to assign the one found before.
                is_wanted = self._instances.try_again(job, instance)
            if not is_wanted:
                job.retry(0.0)  # Parked; the seek takes the place of what is parked.
                return False
        batch = self._batch(job)
        if batch is None:
            return True
        token = current_job.set(job)
        try:
            with self._span(batch):
                if (result := instance.consume(batch)) is not None:
                    check_ran(result, self._route.name)
        except BaseException:
            batch.detach()
            raise
        finally:
            current_job.reset(token)
        if getrefcount(batch) > ALONE:
            batch.detach()
        return True

    def _batch(self, job: Job) -> Batch[Any] | None:
        """The messages of a job that are to be processed; None when the route passes over all of them."""
        self._undecodable.cut(job)
        batch = job.batch(self._route.decoder)
        return self._wanted(batch) if self._route.passes_over_some else batch

    def _wanted(self, batch: Batch[Any]) -> Batch[Any] | None:
        now_ms = time.time() * 1_000
        try:
            reasons = [self._route.flow.passes_over(message, now_ms) for message in batch]
        except BaseException:
            batch.detach()
            raise
        if (expired := reasons.count("expired")) > 0:
            self._server.app.events.emit(MessagesExpired(topic=batch.topic, count=expired))
        if (filtered := reasons.count("filtered")) > 0:
            self._server.app.events.emit(MessagesFiltered(topic=batch.topic, count=filtered))
        places = [place for place, reason in enumerate(reasons) if reason is None]
        if len(places) == len(reasons):
            return batch
        return batch.pick(places) if places else None

    def _may_run(self, job: Job) -> bool:
        """Write the attempt down where a crash would have to be recognised; whether the job is to run."""
        try:
            verdict = self._verdict(job)
            if verdict.commit is not None:
                verdict.commit.wait()
        except FencedError:
            return self._leave_to_the_next(job)
        except AwokeError as failed:
            return self._run_without_record(job, failed)
        if self._is_given_up(verdict):
            error = died(verdict)
            self._recover(
                job, recovery.give_up(self._server, self._route, job, verdict.deaths, error, self._pass_over), error
            )
            return False
        return True

    def _run_without_record(self, job: Job, error: AwokeError) -> bool:
        """The brokers would not take or tell the record: that is no fault of the message, which is processed all the same."""
        self._server.app.events.emit(
            CrashRecordFailed(handler=self._route.name, topic=job.topic, partition=job.partition, error=error)
        )
        return True

    def _on_careful(self, careful: Careful) -> None:
        text = (
            "a process that had begun this message died before its next commit; to find a message that kills its process, "
            f"the messages before offset {careful.until_offset} are taken one by one, each with a commit"
        )
        self._server.app.events.emit(PartitionCareful(handler=self._route.name, **careful._asdict(), text=text))

    def _leave_to_the_next(self, job: Job) -> bool:
        """The partition was given back before the job ran: its next owner processes the messages."""
        job.retry(0.0)
        return False

    def _verdict(self, job: Job) -> Verdict:
        assert self._crashes is not None
        commit = self._record_commit()
        return Verdict(None, 0) if commit is None else self._crashes.before(job, commit)

    def _record_commit(self) -> Commit | None:
        """What brings a record to the broker; None before the member has joined."""
        if self._transactions is not None:
            return self._transactions.commit
        member = self._server.member
        return None if member is None else lambda _: member.commit()

    def _is_given_up(self, verdict: Verdict) -> bool:
        return self._crashes is not None and self._crashes.is_given_up(verdict)

    def _fail(self, job: Job, error: BaseException, *, is_unclear: bool = False) -> recovery.GivenUp | None:
        """Say what failed and give the job back; returns as `recovery.fail`."""
        place = self._undecodable.place(job, error)
        server, route = self._server, self._route
        return recovery.fail(server, route, job, error, self._pass_over, is_unclear=is_unclear, undecodable=place)

    def _recover(self, job: Job, given_up: recovery.GivenUp | None, error: BaseException) -> None:
        """Wait until the broker agrees that a message is given up, and give the job back."""
        while given_up is not None:
            given_up = self._settle(job, given_up, error)

    def _settle(self, job: Job, given_up: recovery.GivenUp, error: BaseException) -> recovery.GivenUp | None:
        """Waits for the broker's answer; returns what it is asked instead where it does not agree, as `recovery.fail`."""
        try:
            given_up.answer.wait()
        except AwokeError as refused:
            return self._refuse(job, given_up, refused)
        self._agree(job, given_up, error)
        return None

    def _agree(self, job: Job, given_up: recovery.GivenUp, error: BaseException) -> None:
        self._pass_over(job)
        recovery.pass_by(self._server, self._route, job, given_up, error)

    def _refuse(self, job: Job, given_up: recovery.GivenUp, refused: AwokeError) -> recovery.GivenUp | None:
        if isinstance(refused, (ClosedError, FencedError)):
            job.retry(0.0)  # The next owner of the partition does it again.
            return None
        return recovery.refuse(self._server, self._route, job, given_up, refused)

    def _end_app(self, job: Job, error: BaseException) -> None:
        """User code asked for the end of the process (`SystemExit`): in order, and with its job not done."""
        job.retry(self._route.retry.backoff_s[1])
        self._server.give_up(error)

    def _end_app_in_hook(self, hook: HookJob, error: BaseException) -> None:
        """As `_end_app`. A batch that comes before the end must not reach a consumer whose `assigned` did not return."""
        if hook.name == "assigned":
            self._instances.failed_to_assign(hook)
        self._server.give_up(error)

    def _complete(self, job: Job, run: Run) -> None:
        self._server.failures.passed(job)
        try:
            if self._route.is_manual:
                job.release()
            else:
                job.complete()
        except FencedError:
            # The partition was taken away while the handler ran; whoever has it now does the batch again.
            run.outcome = "fenced"

    def _forget(self, hook: HookJob) -> None:
        self._instances.forget(hook)
        self._undecodable.forget(hook)
        key = key_of(hook)
        with self._making:
            outputs = [self._ordered.pop(each) for each in list(self._ordered) if each[0] == key]
        for output in outputs:
            output.close()
        partition = None if self._crashes is None else self._crashes.after(hook)
        if self._transactions is None:
            self._server.last_commits.note_hook(hook)
        elif partition is not None:
            self._commit_last(partition, self._transactions)

    def _commit_last(self, partition: Partition, transactions: Transactions) -> None:
        with contextlib.suppress(AwokeError):
            transactions.commit(partition).wait(self._server.settings.revoke_timeout_s)

    def _on_hook_failed(self, hook: HookJob, error: BaseException) -> None:
        if hook.name == "assigned":
            self._instances.failed_to_assign(hook)
        self._server.app.events.emit(
            HookFailed(
                hook=hook.name,
                handler=self._route.name,
                topic=hook.topic,
                partition=hook.partition,
                error=error,
            )
        )

    @contextlib.contextmanager
    def _watching(self, job: Job, task: asyncio.Task[Any] | None = None) -> Iterator[Run]:
        """What goes on around a job: whose threads it starts, how long it may run, what is counted, who is left behind."""
        server, route = self._server, self._route
        limit_s = route.max_processing_s
        number = None if limit_s is None else server.overdue.begin(route.name, job, limit_s, task)
        run = Run(job) if server.metrics is not None else NOT_MEASURED
        try:
            with server.ledger.acting_for(owner_of(job), job.generation, job):
                yield run
        finally:
            if number is not None:
                server.overdue.end(number)
            if server.metrics is not None:
                ran_s = time.perf_counter() - run.began_s
                messages, size_bytes = run.handled(job)
                server.metrics.job_ended(
                    route.name, route.topic, messages, size_bytes, job.waited_s, ran_s, run.outcome
                )
            if route.consumer is not None:
                self._instances.let_go_of_fenced(job)

    def _traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        tracer, name = self._server.tracer, self._route.name
        if tracer is None or self._route.consumer is not None:
            return function
        if self._route.is_async:

            async def traced_async(message: Message[Any]) -> Any:
                with tracer.message(message, name):
                    return await function(message)

            return traced_async

        def traced(message: Message[Any]) -> Any:
            with tracer.message(message, name):
                return function(message)

        return traced

    def _span(self, batch: Batch[Any]) -> contextlib.AbstractContextManager[Any]:
        tracer = self._server.tracer
        return NOTHING if tracer is None else tracer.batch(batch, self._route.name)


MASK = (1 << 64) - 1
"""Makes any hash a number that the engine takes."""

NOTHING: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


def died(verdict: Verdict) -> ProcessDied:
    """What a dead letter says of a message that killed its process."""
    return ProcessDied(f"the process died {verdict.deaths} times in a row at this message")


def mark_done(job: Job, message: Message[Any] | None) -> None:
    """Say how far a failed job came."""
    if message is not None:
        with contextlib.suppress(FencedError):
            job.done(message.offset)
