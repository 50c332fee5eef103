"""The consumers of one route: an instance for each assignment of a partition, with its threads and tasks.

It is called once for each batch of its partition.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import threading
from typing import Any

from awoke._native import Batch, HookJob, Job
from awoke.declare.consumer import Consumer, Hold, current_job, give, hold_of
from awoke.declare.handlers import check_ran
from awoke.declare.routing import Route
from awoke.errors import BackgroundFailed
from awoke.observe.events import BackgroundOverdue, ThreadLeaked
from awoke.observe.tracing import Tracer
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.message_loop import LentBatches, detach_kept
from awoke.runtime.jobs.scope import Scope
from awoke.runtime.process.assigned import Key, key_of, owner_of
from awoke.runtime.process.context import InstanceContext
from awoke.text.printable import shown
from awoke.waiting.drive import FlowLock, elsewhere, is_of_owner
from awoke.waiting.raised import report

logger = logging.getLogger(__name__)

NO_SPAN: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


class Instances:
    """The consumers of one route. Hooks of an assignment come one at a time, its jobs may come several at once."""

    def __init__(self, route: Route, context: InstanceContext) -> None:
        self._route, self._context = route, context
        self._instances: dict[Key, Consumer] = {}
        self._scopes: dict[Key, Scope] = {}
        self._not_ready: set[Key] = set()
        """Assignments whose `assigned` hook failed: it is tried again before their next batch."""
        self._sought: dict[Key, int] = {}
        """Of assignments with lanes: the epoch that ended when `assigned`, tried again, sought. Its jobs are old."""
        self._making: dict[Key, threading.Lock] = {}
        """Held while an instance is made: several jobs of an assignment may want one."""

    def __contains__(self, key: Key) -> bool:
        """Tells whether this assignment has a consumer now."""
        return key in self._instances

    def of(self, work: Job | HookJob) -> Consumer:
        """Returns the consumer of a job or hook, made on first use."""
        key = key_of(work)
        with self._making.setdefault(key, threading.Lock()):
            instance = self._instances.get(key)
            return self._make(key, work) if instance is None else instance

    def _make(self, key: Key, work: Job | HookJob) -> Consumer:
        assert self._route.consumer is not None
        scope = self._scopes[key] = Scope(owner_of(work), work.generation, self._context.events, self._context.ledger)
        # Its topic, partition and app are set before its own __init__, which may use them.
        instance = self._route.consumer.__new__(self._route.consumer)
        instance.app, instance.topic, instance.partition = self._context.app, work.topic, work.partition
        transactions = self._context.transactions if self._route.is_exactly_once else None
        new_entry = None if transactions is None else transactions.entry
        has_lanes = self._route.lanes is not None
        member, tables = self._context.member, self._route.written_tables
        give(instance, Hold(member, work.assignment(), scope, new_entry, has_lanes=has_lanes, tables=tables))
        try:
            instance.__init__()  # type: ignore[misc]
        except BaseException:
            self._drop(key)  # Its threads and tasks end: the next attempt makes another instance.
            raise
        self._instances[key] = instance
        return instance

    def ready(self, job: Job) -> Consumer:
        """Returns the job's consumer.

        Raises:
            BackgroundFailed: one of its background functions has failed it; the next job gets a new instance.
        """
        instance = self.of(job)
        key = key_of(job)
        scope = self._scopes.get(key)
        failure = None if scope is None else scope.failure
        if failure is None:
            return instance
        self._drop(key)
        self._not_ready.add(key)
        raise BackgroundFailed(f"{owner_of(job)}: a background function failed: {shown(failure)}") from failure

    @property
    def is_any_not_ready(self) -> bool:
        """True if an `assigned` hook is to be run again, or a repeated one sought while other jobs waited for it."""
        return bool(self._not_ready or self._sought)

    async def try_again(self, job: Job, instance: Consumer) -> bool:
        """Runs the hook `assigned` that failed before; returns whether the job's batch is still to be processed.

        It is not if the hook sought. Should the hook fail again, the batch is tried again, and with it the hook.
        """
        key = key_of(job)
        if key not in self._not_ready:
            return self._sought.get(key) != job.epoch
        try:
            await finished(instance.assigned(), f"{self._route.name}.assigned", self._route.is_async)
        except BaseException:
            self._drop(key)
            raise
        return self._is_ready(key, job, instance)

    def _is_ready(self, key: Key, job: Job, instance: Consumer) -> bool:
        """Notes that the hook has returned; returns whether the job's batch is still to be processed."""
        has_sought = hold_of(instance).has_sought
        if has_sought and job.is_of_lanes:
            self._sought[key] = job.epoch
        self._not_ready.discard(key)  # Last: other jobs look without a lock whether they must wait for this.
        return not has_sought

    def failed_to_assign(self, hook: HookJob) -> None:
        """Has the hook run again before the next batch, on another instance."""
        self._drop(key_of(hook))
        self._not_ready.add(key_of(hook))

    def _drop(self, key: Key) -> None:
        self._instances.pop(key, None)
        scope = self._scopes.pop(key, None)
        if scope is not None:
            scope.stop()

    def is_skipped(self, hook: HookJob) -> bool:
        """Tells whether the hook has no consumer to be called on: `assigned` never ran, or has failed."""
        if hook.name == "assigned":
            return False
        key = key_of(hook)
        return key not in self._instances or (hook.name == "tick" and key in self._not_ready)

    async def close_scope(self, hook: HookJob) -> None:
        """Ends what the consumer owns, and waits for it up to `revoke_timeout_s`."""
        scope = self._scopes.pop(key_of(hook), None)
        if scope is not None:
            self._report_late(hook, await scope.close(self._context.settings.revoke_timeout_s))

    def _report_late(self, hook: HookJob, late: list[str]) -> None:
        if late:
            self._context.events.emit(BackgroundOverdue(owner=owner_of(hook), threads=late))

    def forget(self, hook: HookJob) -> None:
        """Drops the consumer of an assignment that has ended."""
        key = key_of(hook)
        instance = self._instances.pop(key, None)
        if instance is not None:
            hold_of(instance).member = None
        self._not_ready.discard(key)
        self._sought.pop(key, None)
        self._making.pop(key, None)

    async def let_go_of_fenced(self, work: Job | HookJob) -> None:
        """Ends the consumer of a job or hook that outlived its assignment: no further hook comes for it."""
        instance = self._instances.get(key_of(work))
        assignment = None if instance is None else hold_of(instance).assignment
        if instance is None or assignment is None or assignment.is_current:
            return
        if self._instances.pop(key_of(work), None) is None:
            return
        try:
            outcome = instance.lost()
            if self._route.is_async and inspect.isawaitable(outcome):
                await outcome
        except BaseException as error:
            if is_of_owner(error):
                raise
            report(error, logger, "%s: lost() failed", owner_of(work))
        finally:
            scope = self._scopes.pop(key_of(work), None)
            if scope is not None:
                scope.stop()
        await elsewhere(self.report_leaks, work)

    def report_leaks(self, work: HookJob | Job) -> None:
        """Reports the threads that a consumer has started itself and that outlive it. Blocks up to `LEAK_GRACE_S`."""
        for thread in self._context.ledger.leaked(owner_of(work), work.generation):
            self._context.events.emit(
                ThreadLeaked(
                    owner=thread.owner,
                    handler=self._route.name,
                    thread=thread.name,
                    started_at=thread.started_at,
                )
            )


class PerBatch:
    """Calls `consume` of a route's consumers, once for each batch."""

    def __init__(self, calls: HandlerCalls, tracer: Tracer | None, batches: LentBatches, instances: Instances) -> None:
        self._calls, self._name, self._is_async, self._tracer = calls, calls.name, calls.is_async, tracer
        self._batches, self._instances = batches, instances
        self._assigning = FlowLock()
        """Held while a hook that failed is tried again."""

    async def run(self, job: Job) -> bool:
        """Calls the consumer with the messages of a job.

        Returns whether the job is over; it is not if its consumer sought, and then is given back to be tried again.
        Raises what the consumer raises.
        """
        instance = self._instances.ready(job)
        if self._instances.is_any_not_ready:
            async with self._assigning:
                instance = self._instances.ready(job)  # Another job may have failed to assign the one found before.
                is_wanted = await self._instances.try_again(job, instance)
            if not is_wanted:
                job.retry(0.0)  # Parked; the seek takes the place of what is parked.
                return False
        batch, lease = self._batches.of(job)
        if batch is None:
            detach_kept(lease)
            return True
        token = current_job.set(job)
        try:
            with self._span(batch):
                consume = self._calls.consume
                result = instance.consume(batch) if consume is None else consume(instance, batch)
                if self._is_async:
                    result = await result
                if result is not None:
                    check_ran(result, self._name)
        except BaseException:
            batch.detach()
            raise
        finally:
            current_job.reset(token)
        batch = result = None
        detach_kept(lease)
        return True

    def _span(self, batch: Batch[Any]) -> contextlib.AbstractContextManager[Any]:
        return NO_SPAN if self._tracer is None else self._tracer.batch(batch, self._name)


async def finished(outcome: Any, name: str, is_async: bool) -> None:
    """Awaits what a hook returned, where it is `async def`; a hook of a class with an async `consume` may be either.

    Raises:
        HandlerDidNotRun: What is left then has not run, as a generator.
    """
    if is_async and inspect.isawaitable(outcome):
        outcome = await outcome
    if outcome is not None:
        check_ran(outcome, name)
