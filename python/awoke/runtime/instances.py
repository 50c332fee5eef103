"""The consumers of one route: an instance for each assignment of a partition, what it owns, and what it leaves behind."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from awoke._native import HookJob, Job
from awoke.consumer import Consumer
from awoke.errors import BackgroundFailed
from awoke.events import BackgroundOverdue, ThreadLeaked
from awoke.handlers import check_ran
from awoke.runtime.scope import Scope

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import AppRunner

logger = logging.getLogger(__name__)

Key = tuple[str, int, int]
"""Topic, partition and generation: one assignment."""

LAST_HOOKS = frozenset({"revoked", "lost", "shutdown"})


class Instances:
    """The consumers of one route. Hooks of an assignment come one at a time, its jobs may come several at once."""

    def __init__(self, server: AppRunner, route: Route) -> None:
        self._server, self._route = server, route
        self._instances: dict[Key, Consumer] = {}
        self._scopes: dict[Key, Scope] = {}
        self._not_ready: set[Key] = set()
        """Assignments whose `assigned` hook failed: it is tried again before their next batch."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Those that run the `lost` hook of a consumer whose job has outlived its assignment."""
        self._sought: dict[Key, int] = {}
        """Of assignments with lanes: the epoch that ended when `assigned`, tried again, sought. Its jobs are old."""
        self._making: dict[Key, threading.Lock] = {}
        """Held while an instance is made: several jobs of an assignment may want one."""

    def __contains__(self, key: Key) -> bool:
        """Whether this assignment has a consumer now."""
        return key in self._instances

    def of(self, work: Job | HookJob) -> Consumer:
        """The consumer that a job or hook belongs to, made on first use."""
        key = key_of(work)
        with self._making.setdefault(key, threading.Lock()):
            instance = self._instances.get(key)
            return self._make(key, work) if instance is None else instance

    def _make(self, key: Key, work: Job | HookJob) -> Consumer:
        assert self._route.consumer is not None
        scope = self._scopes[key] = Scope(owner_of(work), work.generation, self._server.app.events, self._server.ledger)
        # What a consumer is for is set before its own __init__, which may want it.
        instance = self._route.consumer.__new__(self._route.consumer)
        instance.app, instance.topic, instance.partition = self._server.app, work.topic, work.partition
        instance._member, instance._assignment, instance._scope = self._server.member, work.assignment(), scope
        instance._has_lanes = self._route.lanes is not None
        transactions = self._server.transactions
        if transactions is not None and self._route.is_exactly_once:
            instance._contribution = transactions.contribution
        try:
            instance.__init__()  # type: ignore[misc]
        except BaseException:
            self._drop(key)  # What it has started ends: the next attempt makes another instance.
            raise
        self._instances[key] = instance
        return instance

    def ready(self, job: Job) -> Consumer:
        """The job's consumer; raises, and the next one is new, when a background function has failed it."""
        instance = self.of(job)
        key = key_of(job)
        scope = self._scopes.get(key)
        failure = None if scope is None else scope.failure
        if failure is None:
            return instance
        self._drop(key)
        self._not_ready.add(key)
        raise BackgroundFailed(f"{owner_of(job)}: a background function failed: {failure!r}") from failure

    @property
    def is_any_not_ready(self) -> bool:
        """Whether an `assigned` hook is to be tried again, or was and sought while other jobs waited for it."""
        return bool(self._not_ready or self._sought)

    def try_again(self, job: Job, instance: Consumer) -> bool:
        """Runs the hook `assigned` that failed before; returns whether the job's batch is still to be processed.

        It is not if the hook sought. Should the hook fail again, the batch is tried again, and with it the hook.
        """
        key = key_of(job)
        if key not in self._not_ready:
            return self._sought.get(key) != job.epoch
        try:
            self._check_ran(instance.assigned())
        except BaseException:
            self._drop(key)
            raise
        return self._is_ready(key, job, instance)

    def _is_ready(self, key: Key, job: Job, instance: Consumer) -> bool:
        """The hook has returned; returns whether the job's batch is from where reading is to go on."""
        if instance._has_sought and job.is_of_lanes:
            self._sought[key] = job.epoch
        self._not_ready.discard(key)  # Last: other jobs look without a lock whether they must wait for this.
        return not instance._has_sought

    async def try_again_async(self, job: Job, instance: Consumer) -> bool:
        """As `try_again`, for a hook that may be `async def`."""
        key = key_of(job)
        if key not in self._not_ready:
            return self._sought.get(key) != job.epoch
        try:
            outcome = instance.assigned()
            self._check_ran(await outcome if inspect.isawaitable(outcome) else outcome)
        except BaseException:
            self._drop(key)
            raise
        return self._is_ready(key, job, instance)

    def _check_ran(self, outcome: object) -> None:
        if outcome is not None:
            check_ran(outcome, f"{self._route.name}.assigned")

    def failed_to_assign(self, hook: HookJob) -> None:
        """The hook is to be tried again, on another instance."""
        self._drop(key_of(hook))
        self._not_ready.add(key_of(hook))

    def _drop(self, key: Key) -> None:
        self._instances.pop(key, None)
        scope = self._scopes.pop(key, None)
        if scope is not None:
            scope.close(0.0)

    def is_skipped(self, hook: HookJob) -> bool:
        """Whether no consumer is there to hear the hook: `assigned` never ran, or has failed."""
        if hook.name == "assigned":
            return False
        key = key_of(hook)
        return key not in self._instances or (hook.name == "tick" and key in self._not_ready)

    def close_scope(self, hook: HookJob) -> None:
        """End what the consumer owns."""
        scope = self._scopes.pop(key_of(hook), None)
        if scope is not None:
            self._report_late(hook, scope.close(self._server.settings.revoke_timeout_s))

    async def close_scope_async(self, hook: HookJob) -> None:
        """As `close_scope`, on the loop whose tasks it owns."""
        scope = self._scopes.pop(key_of(hook), None)
        if scope is not None:
            self._report_late(hook, await scope.close_async(self._server.settings.revoke_timeout_s))

    def _report_late(self, hook: HookJob, late: list[str]) -> None:
        if late:
            self._server.app.events.emit(BackgroundOverdue(owner=owner_of(hook), threads=late))

    def forget(self, hook: HookJob) -> None:
        """The assignment has ended."""
        key = key_of(hook)
        instance = self._instances.pop(key, None)
        if instance is not None:
            instance._member = None
        self._not_ready.discard(key)
        self._sought.pop(key, None)
        self._making.pop(key, None)

    def let_go_of_fenced(self, job: Job | HookJob) -> None:
        """A job or hook outlived its assignment: no hook comes for its consumer any more, so it ends here."""
        instance = self._instances.get(key_of(job))
        if instance is None or instance._assignment is None or instance._assignment.is_current:
            return
        if self._instances.pop(key_of(job), None) is None:
            return
        try:
            outcome = instance.lost()
        except Exception:
            logger.exception("%s: lost() failed", owner_of(job))
            outcome = None
        if inspect.iscoroutine(outcome):  # Of an async consumer, whose jobs end on the event loop.
            task = asyncio.get_running_loop().create_task(self._hear_lost(job, outcome))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._end_fenced(job)

    async def _hear_lost(self, job: Job | HookJob, outcome: Coroutine[Any, Any, Any]) -> None:
        try:
            await outcome
        except Exception:
            logger.exception("%s: lost() failed", owner_of(job))
        finally:
            self._end_fenced(job)

    def _end_fenced(self, job: Job | HookJob) -> None:
        scope = self._scopes.pop(key_of(job), None)
        if scope is not None:
            scope.close(0.0)
        self.report_leaks(job)

    def report_leaks(self, work: HookJob | Job) -> None:
        """Name the threads that a consumer has started otherwise, and that outlive it."""
        for thread in self._server.ledger.leaked(owner_of(work), work.generation):
            self._server.app.events.emit(
                ThreadLeaked(
                    owner=thread.owner,
                    handler=self._route.name,
                    thread=thread.name,
                    started_at=thread.started_at,
                )
            )


def key_of(work: Job | HookJob) -> Key:
    """The assignment that a job or hook belongs to."""
    return (work.topic, work.partition, work.generation)


def owner_of(work: Job | HookJob) -> str:
    """A consumer by name, for threads and logs."""
    return f"{work.topic}[{work.partition}]"
