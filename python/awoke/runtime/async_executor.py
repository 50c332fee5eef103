"""As `executor`, for `async def`: jobs and hooks are tasks of the runtime's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import deque
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from awoke._native import HookJob, Job, Message
from awoke.consumer import current_job
from awoke.errors import AwokeError, FencedError
from awoke.handlers import check_ran
from awoke.runtime import recovery
from awoke.runtime.crashes import Lookup, Verdict, wait_for_async
from awoke.runtime.exactly_once import Contribution, Transactions
from awoke.runtime.executor import ALONE, Executor, died, mark_done
from awoke.runtime.instances import LAST_HOOKS, owner_of
from awoke.runtime.outgoing import Outgoing, check_delivered_async
from awoke.runtime.outputs import Sent, contribute

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import AppRunner


async def finish_hook(outcome: Any, name: str) -> None:
    """Awaits what a hook returned, where it is `async def`; a hook of a class with an async `consume` may be either.

    Raises:
        HandlerDidNotRun: What is left then has not run, as a generator.
    """
    if inspect.isawaitable(outcome):
        outcome = await outcome
    if outcome is not None:
        check_ran(outcome, name)


class AsyncExecutor(Executor):
    """As `Executor`, for `async def`; runs on the runtime's event loop."""

    def __init__(self, server: AppRunner, route: Route) -> None:
        super().__init__(server, route)
        self._assigning_async = asyncio.Lock()

    async def run_job_async(self, job: Job) -> None:
        """Process a batch and give the job back."""
        with self._watching(job, asyncio.current_task()) as run:
            try:
                if (asked := self._server.failures.take(job)) is not None:
                    given_up = recovery.skip(self._server, self._route, job, asked, self._pass_over)
                    await self._recover_async(job, given_up, asked)
                    return
                if self._crashes is not None and not await self._may_run_async(job):
                    return
                if self._transactions is not None:
                    if not await self._process_once_async(job, self._transactions):
                        return
                elif self._route.consumer is not None:
                    if not await self._consume_async(job):
                        return
                elif self._route.output is not None and job.is_of_lanes:
                    await self._call_and_go_on_async(job)
                    return
                else:
                    await self._call_async(job)
            except Exception as error:
                run.outcome = "failed"
                given_up = self._fail(job, error)
                await self._recover_async(job, given_up, error)
            except asyncio.CancelledError:
                job.retry(0.0)  # The loop ends: nobody waits for this job any more.
                raise
            except BaseException as error:
                run.outcome = "failed"
                self._end_app(job, error)
            else:
                self._complete(job, run)

    async def run_hook_async(self, hook: HookJob) -> None:
        """Run a hook and give the partition back."""
        with self._server.ledger.acting_for(owner_of(hook), hook.generation, hook):
            try:
                if self._route.consumer is not None and not self._instances.is_skipped(hook):
                    outcome = getattr(self._instances.of(hook), hook.name)()
                    await finish_hook(outcome, f"{self._route.name}.{hook.name}")
            except Exception as error:
                self._on_hook_failed(hook, error)
            except BaseException as error:
                self._end_app_in_hook(hook, error)
            finally:
                if hook.name in LAST_HOOKS:
                    await self._instances.close_scope_async(hook)
                    if self._transactions is None:
                        self._forget(hook)
                    else:  # Waits for a commit.
                        await asyncio.get_running_loop().run_in_executor(None, self._forget, hook)
                hook.finish()
                if hook.name not in LAST_HOOKS:
                    self._instances.let_go_of_fenced(hook)
        if hook.name in LAST_HOOKS:
            await asyncio.get_running_loop().run_in_executor(None, self._instances.report_leaks, hook)

    async def _may_run_async(self, job: Job) -> bool:
        try:
            verdict = await self._verdict_async(job)
            if verdict.commit is not None:
                await verdict.commit
        except FencedError:
            return self._leave_to_the_next(job)
        except AwokeError as failed:
            return self._run_without_record(job, failed)
        if self._is_given_up(verdict):
            error = died(verdict)
            given_up = recovery.give_up(self._server, self._route, job, verdict.deaths, error, self._pass_over)
            await self._recover_async(job, given_up, error)
            return False
        return True

    async def _verdict_async(self, job: Job) -> Verdict:
        assert self._crashes is not None
        commit = self._record_commit()
        if commit is None:
            return Verdict(None, 0)
        while not isinstance(found := self._crashes.ask(job, commit), Verdict):
            if isinstance(found, Lookup):
                # Shielded: jobs that wait for it must hear of its end although this one is cancelled.
                return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, found.run))
            await wait_for_async(found)
        return found

    async def _recover_async(self, job: Job, given_up: recovery.GivenUp | None, error: BaseException) -> None:
        while given_up is not None:
            try:
                await given_up.answer
            except AwokeError as refused:
                given_up = self._refuse(job, given_up, refused)
            else:
                self._agree(job, given_up, error)
                return

    async def _process_once_async(self, job: Job, transactions: Transactions) -> bool:
        contribution = transactions.contribution()
        recovery.narrow(job)
        if self._route.consumer is None:
            await self._collect_async(job, contribution)
        else:
            if not await self._consume_async(job):
                return False
            if not job.remaining:
                return True
        self._contribute(job, contribution)
        return False

    async def _collect_async(self, job: Job, contribution: Contribution) -> None:
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
                answer = await self._answer(message)
                if answer is not None:
                    contribute(contribution, self._route.output, answer)
                done = message
        except BaseException:
            batch.detach()
            if done is not None:
                with contextlib.suppress(AwokeError):
                    await contribution.submit(job, done.offset)
            raise
        message = done = None
        if getrefcount(batch) > ALONE:
            batch.detach()

    async def _call_async(self, job: Job) -> None:
        sends_on = self._route.output is not None
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
                result = await self._function(message)
                if result is not None:
                    if not sends_on:
                        check_ran(result, self._route.name)
                    elif type(result) is list:
                        sent.extend(result)
                    else:
                        sent.append(result)
                done = message
        except BaseException:
            batch.detach()
            result = None
            await check_delivered_async(self._server, self._route, job, sent)
            mark_done(job, done)
            raise
        message = done = result = None
        if getrefcount(batch) > ALONE:
            batch.detach()
        del batch
        await check_delivered_async(self._server, self._route, job, sent)

    async def _call_and_go_on_async(self, job: Job) -> None:
        outgoing = Outgoing(self._end_outgoing)
        results = self._results(job, outgoing)
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = self._batch(job)
        try:
            for message in () if batch is None else job.each(batch):
                if self._route.decoder is not None:
                    message.value  # noqa: B018
                results.add(message, await self._answer(message))
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

    async def _consume_async(self, job: Job) -> bool:
        instance = self._instances.ready(job)
        if self._instances.is_any_not_ready:
            async with self._assigning_async:
                instance = self._instances.ready(job)
                is_wanted = await self._instances.try_again_async(job, instance)
            if not is_wanted:
                job.retry(0.0)
                return False
        batch = self._batch(job)
        if batch is None:
            return True
        token = current_job.set(job)
        try:
            with self._span(batch):
                if (result := await instance.consume(batch)) is not None:
                    check_ran(result, self._route.name)
        except BaseException:
            batch.detach()
            raise
        finally:
            current_job.reset(token)
        if getrefcount(batch) > ALONE:
            batch.detach()
        return True
