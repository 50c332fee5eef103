"""Runs the code of one route: each job by the route's strategy, each hook on the instance of its assignment.

User code begins and ends here: what it raises is caught in `process` and `call_hook`, and nowhere else. A job goes

    run_job ▶ drive ▶ process ▶ MessageLoop.run ▶ the handler, for each message

and back the same way, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Literal

from awoke._native import HookJob, Job, LaneAssignment, Message
from awoke.declare.routing import Route
from awoke.errors import AwokeError, FencedError, end_in
from awoke.observe.events import HookFailed, LaneFailed
from awoke.observe.ledger import Acting, acting
from awoke.observe.metrics.recorder import EndedJob
from awoke.payloads.registry.errors import RegistryError
from awoke.runtime.failures.crashes import CrashGuard
from awoke.runtime.failures.recovery import Recovery, schema_needed
from awoke.runtime.failures.undecodable import Undecodable
from awoke.runtime.jobs.exactly_once import ConsumerExactlyOnce, ExactlyOnce, JobTransactions
from awoke.runtime.jobs.forked import end_child, forked
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.instances import Instances, PerBatch, finished
from awoke.runtime.jobs.message_loop import (
    LentBatches,
    MessageLoop,
    NoOutput,
    Strategy,
    detach_kept,
    first_only_of,
    lease_of,
)
from awoke.runtime.jobs.ordered_output import OrderedOutput, OrderedOutputs
from awoke.runtime.jobs.results import LanesOutput, WithOutput
from awoke.runtime.process.assigned import LAST_HOOKS, owner_of
from awoke.runtime.process.context import RouteContext
from awoke.waiting.drive import absorb_cancellation, drive, drive_later, elsewhere, is_of_owner, within

MASK = (1 << 64) - 1
"""Makes any hash a number that the engine takes."""

OWNERS_MAX = 10_000
"""Assignments whose consumers' names are kept."""

Outcome = Literal["done", "failed", "fenced"]
"""The end of a job, as the metrics count it."""


class Executor:
    """Runs the jobs and hooks of one route. Jobs of different partitions overlap, and of one where the route says so.

    Workers call `run_job` and `run_hook`, the event loop awaits `process` and `call_hook`.
    """

    def __init__(self, context: RouteContext, route: Route) -> None:
        self._context, self._route = context, route
        self._undecodable = Undecodable()
        self._instances = Instances(route, context)
        self._outputs = OrderedOutputs(context, route)
        self._recovery = Recovery(route, context, self._undecodable, self._outputs.skip_first)
        has_letters = route.dead_letter is not None
        self._crash_guard = CrashGuard(route, context, self._recovery) if has_letters else None
        self._calls = HandlerCalls(route, context)
        self._cleanups = context.app.cleanups
        self.name = route.name
        """The name of the code that it runs."""
        self.new_context = context.contexts.new
        """Makes the context of a job or a hook."""
        self._call = self._choose()
        self._owners: dict[int, str] = {}
        """The name of the consumer of each assignment, by its generation: made once, and not for each job."""
        self._is_watched = context.metrics is not None or route.max_processing_s is not None

    def _choose(self) -> Callable[[Job], Coroutine[Any, Any, bool]]:
        """Returns what calls user code with the messages of a job, as `MessageLoop.run` does."""
        route, context = self._route, self._context
        batches = LentBatches(route, context.events, self._undecodable)
        transactions = None
        if route.is_exactly_once:
            assert context.transactions is not None
            transactions = JobTransactions(context.transactions, self._recovery, context.refusals, self._end)
        if route.consumer is not None:
            per_batch = PerBatch(self._calls, context.tracer, batches, self._instances)
            return per_batch.run if transactions is None else ConsumerExactlyOnce(route, per_batch, transactions).run
        strategy, first_only = self._strategy(transactions), first_only_of(route, context.events)
        return MessageLoop(self._calls, context.tracer, batches, strategy, first_only).run

    def _strategy(self, transactions: JobTransactions | None) -> Strategy[Any]:
        route, context = self._route, self._context
        if transactions is not None:
            return ExactlyOnce(route, context, transactions)
        if route.output is None:
            return NoOutput(route.name)
        if route.is_ordered:
            return OrderedOutput(route, context, self._outputs, self._end)
        if route.lanes is not None:
            return LanesOutput(route, context, self._end)
        return WithOutput(route, context)

    def bind(self) -> None:
        """Makes the handler ready to be called, when the app's start-up functions have run. May block.

        Raises what the app raises for an argument.
        """
        if self._calls.is_late:
            self._calls.bind()
            self._call = self._choose()

    def close(self, deadline_s: float) -> list[threading.Thread]:
        """Ends what the executor has started; returns the threads that still run at the deadline."""
        return []

    def threads(self) -> list[threading.Thread]:
        """Returns the threads that run user code for the workers. Does not block."""
        return []

    def run_job(self, job: Job) -> None:
        """As `process`, on the calling thread, in a context of its own. Blocks as long as user code does."""
        self.new_context().run(drive, self.process(job))

    def run_hook(self, hook: HookJob) -> None:
        """As `call_hook`, on the calling thread, in a context of its own. Blocks as long as user code does."""
        self.new_context().run(drive, self.call_hook(hook))

    def assign_lanes(self, assignment: LaneAssignment) -> None:
        """Assigns a lane to each message, by the route's function. An error there falls back to the message's key."""
        lane_of = self._route.concurrency.lane_of
        assert lane_of is not None
        numbers = []
        batch = assignment.batch(self._route.loading_decoders)
        lease = lease_of(batch)
        away: BaseException | None = None
        for message in batch:
            try:
                if away is not None:
                    raise away  # It would wait for the registry again, once for each message.
                numbers.append(copy_context().run(lane_number, lane_of, message))
            except BaseException as error:
                if (end := end_in(error)) is not None:
                    self._context.stop_app(end)
                numbers.append(hash(message.raw_key) & MASK)
                away = error if isinstance(schema_needed(error), RegistryError) else away
                self._context.events.emit(
                    LaneFailed(
                        handler=self._route.name,
                        topic=assignment.topic,
                        partition=assignment.partition,
                        offset=message.offset,
                        error=error,
                    )
                )
        batch = message = away = None  # type: ignore[assignment]
        detach_kept(lease)
        assignment.finish(numbers)

    async def process(self, job: Job) -> None:
        """Processes a batch. The job is then completed, given back to be tried again, or ends later by itself."""
        watch = JobWatch(self._route, self._context, job) if self._is_watched else None
        outcome: Outcome = "done"
        generation = job.generation
        owner = self._owners.get(generation) or self._name_owner(job)
        task = asyncio.current_task() if self._route.is_async else None
        current = Acting(self._context.ledger, owner, generation, job, threading.get_ident(), task)
        token = acting.set(current)
        try:
            outcome = await self._run(job)
        finally:
            current.running = current.task = None
            acting.reset(token)
            if task is not None and task.cancelling():
                await absorb_cancellation()
            if self._cleanups.has_any:
                await self._cleanups.end(is_async=self._route.is_async)
            if watch is not None:
                watch.end(job, outcome)
            if self._route.consumer is not None:
                await self._instances.let_go_of_fenced(job)

    async def _run(self, job: Job) -> Outcome:
        try:
            if self._cleanups.has_any:
                await self._cleanups.call(is_async=self._route.is_async)
            failures = self._context.failures
            if failures.asked and (left := failures.take(job)) is not None:
                await self._recovery.leave(job, *left)
                return "done"
            if self._crash_guard is not None and not await self._crash_guard.may_run(job):
                return "done"
            if not await self._call(job):
                return "done"
            if forked:
                end_child()
        except BaseException as error:
            if forked:
                end_child()
            if is_of_owner(error):
                job.retry(0.0)
                raise
            await absorb_cancellation()
            recovered = self._recovery.failed(job, error)
            current = acting.get()
            if current is None or (context := current.failed_in) is None:
                await recovered
            else:
                await within(context, recovered)
            return "failed"
        return self._complete(job)

    def _complete(self, job: Job) -> Outcome:
        """Ends a job whose messages are all done. Does not block.

        Where its partition was taken away meanwhile, the next owner processes the messages again.
        """
        failures = self._context.failures
        if failures.failing:
            failures.passed(job)
        try:
            if self._route.is_manual:
                job.release()
            else:
                job.complete()
        except FencedError:
            return "fenced"
        return "done"

    def _name_owner(self, job: Job) -> str:
        """Returns the name of a job's consumer, and keeps it for the jobs of its assignment."""
        if len(self._owners) >= OWNERS_MAX:  # Jobs that end behind their assignment's last hook leave theirs.
            self._owners.clear()
        owner = self._owners[job.generation] = owner_of(job)
        return owner

    def _end(self, job: Job, error: BaseException | None) -> None:
        """Ends a job whose results are acknowledged, or one refused; on a thread of awoke's that runs no user code."""
        if error is None:
            self._complete(job)
        else:
            drive_later(self._recovery.failed(job, error))

    # Hooks.

    async def call_hook(self, hook: HookJob) -> None:
        """Runs a hook and gives the partition back."""
        is_last = hook.name in LAST_HOOKS
        if hook.name == "assigned":
            self._context.assigned.add(hook)
        with self._context.ledger.acting_for(owner_of(hook), hook.generation, hook):
            try:
                if self._route.consumer is not None and not self._instances.is_skipped(hook):
                    await self._cleanups.call(is_async=self._route.is_async)
                    outcome = getattr(self._instances.of(hook), hook.name)()
                    await finished(outcome, f"{self._route.name}.{hook.name}", self._route.is_async)
            except BaseException as error:
                # A batch that comes before the app's end must not reach a consumer whose `assigned` did not return.
                if hook.name == "assigned":
                    self._instances.failed_to_assign(hook)
                if is_of_owner(error):
                    raise
                self._on_hook_failed(hook, error)
            finally:
                await absorb_cancellation()
                await self._cleanups.end(is_async=self._route.is_async)
                if is_last:
                    await self._calls.close_assignment(hook)
                    await self._instances.close_scope(hook)
                    await self._forget(hook)
                hook.finish()
                if not is_last:
                    await self._instances.let_go_of_fenced(hook)
        if is_last:
            await elsewhere(self._instances.report_leaks, hook)

    def _on_hook_failed(self, hook: HookJob, error: BaseException) -> None:
        if (end := end_in(error)) is not None:
            self._context.stop_app(end)
            return
        self._context.events.emit(
            HookFailed(
                hook=hook.name,
                handler=self._route.name,
                topic=hook.topic,
                partition=hook.partition,
                error=error,
            )
        )

    async def _forget(self, hook: HookJob) -> None:
        """Drops what is known of an assignment that has ended, and commits what is left of it."""
        self._context.assigned.remove(hook)
        self._owners.pop(hook.generation, None)
        self._instances.forget(hook)
        self._undecodable.forget(hook)
        self._outputs.forget(hook)
        partition = None if self._crash_guard is None else self._crash_guard.after(hook)
        transactions = self._context.transactions if self._route.is_exactly_once else None
        if transactions is None:
            self._context.last_commits.note_hook(hook)
        elif partition is not None:
            with contextlib.suppress(AwokeError):
                await elsewhere(transactions.commit(partition).wait, self._context.settings.revoke_timeout_s)


def lane_number(lane_of: Callable[[Message[Any]], object], message: Message[Any]) -> int:
    """Returns the number of a message's lane."""
    return hash(lane_of(message)) & MASK


class JobWatch:
    """One job that runs on the calling thread, or as the calling task, from now until `end`."""

    def __init__(self, route: Route, context: RouteContext, job: Job) -> None:
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
