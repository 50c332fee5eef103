"""Runs user code for one route: a function per message, or an instance of a class per topic-partition.

The sync and the async executor differ only in how they call; both report failures to `recovery`. This is where user code
begins and ends: what it raises is caught here and nowhere else.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from awoke import _native
from awoke._native import DeliveryHandle, HookJob, Job, Message
from awoke.consumer import Consumer
from awoke.errors import FencedError
from awoke.runtime import recovery

if TYPE_CHECKING:
    from awoke.routing import Route
    from awoke.runtime.server import Server

Key = tuple[str, int, int]
"""Topic, partition and generation: one assignment."""

ALONE = 2
"""What `getrefcount` says of a batch that only the executor's variable refers to.

Whoever keeps a message (in a list, in an exception's traceback) would keep librdkafka's buffers and client alive with it:
a batch that is referred to beyond its job is detached, which copies it.
"""


class Executor:
    """Runs the jobs and hooks of one route. A partition's jobs never overlap; different partitions' may."""

    def __init__(self, server: Server, route: Route) -> None:
        self._server = server
        self._route = route
        self._instances: dict[Key, Consumer] = {}
        self._not_ready: set[Key] = set()
        """Assignments whose `assigned` hook failed: it is tried again before their next batch."""

    def run_job(self, job: Job) -> None:
        """Process a batch and give the job back, done or to be tried again. Blocks as long as user code does."""
        try:
            if self._route.consumer is not None:
                self._consume(job)
            elif self._route.output is not None:
                self._call_with_output(job)
            else:
                self._call(job)
        except Exception as error:
            recovery.fail(self._server, self._route, job, error)
        else:
            self._complete(job)

    def run_hook(self, hook: HookJob) -> None:
        """Run a hook and give the partition back."""
        try:
            if self._route.consumer is not None:
                getattr(self._instance(hook.topic, hook.partition, hook.generation), hook.name)()
        except Exception as error:
            self._on_hook_failed(hook, error)
        finally:
            self._forget(hook)
            hook.finish()

    def _call(self, job: Job) -> None:
        function = self._route.function
        is_typed = self._route.decoder is not None
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = job.batch(self._route.decoder)
        try:
            for message in batch:
                if is_typed:
                    message.value  # noqa: B018 - a value that does not decode is the message's error, not the handler's
                function(message)
                done = message
        except BaseException:
            mark_done(job, done)
            batch.detach()
            raise
        message = done = None
        if getrefcount(batch) > ALONE:
            batch.detach()

    def _call_with_output(self, job: Job) -> None:
        """As `_call`; what the function returns is sent on, and all of it acknowledged before the job is done."""
        sent: list[DeliveryHandle] = []
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = job.batch(self._route.decoder)
        try:
            for message in batch:
                if self._route.decoder is not None:
                    message.value  # noqa: B018
                self._send_on(message, self._route.function(message), sent)
                done = message
        except BaseException:
            batch.detach()
            check_delivered(sent)
            mark_done(job, done)
            raise
        message = done = None
        if getrefcount(batch) > ALONE:
            batch.detach()
        check_delivered(sent)

    def _send_on(self, message: Message[Any], result: Any, sent: list[DeliveryHandle]) -> None:
        if result is not None and self._route.output is not None:
            sent.append(self._server.app.producer.produce(self._route.output, result, key=message.key))

    def _consume(self, job: Job) -> None:
        instance = self._instance(job.topic, job.partition, job.generation)
        if self._not_ready:
            self._try_again_to_assign(job, instance.assigned)
        batch = job.batch(self._route.decoder)
        instance._job = job
        try:
            instance.consume(batch)
        except BaseException:
            batch.detach()
            raise
        finally:
            instance._job = None
        if getrefcount(batch) > ALONE:
            batch.detach()

    def _try_again_to_assign(self, job: Job, assigned: Callable[[], Any]) -> Any:
        """Run the hook that failed before; should it fail again, the batch is tried again, and with it the hook."""
        key = (job.topic, job.partition, job.generation)
        if key not in self._not_ready:
            return None
        try:
            outcome = assigned()
        except BaseException:
            self._instances.pop(key, None)
            raise
        self._not_ready.discard(key)
        return outcome

    def _complete(self, job: Job) -> None:
        # Fenced: the partition was taken away while the handler ran; whoever has it now does the batch again.
        with contextlib.suppress(FencedError):
            job.complete()

    def _instance(self, topic: str, partition: int, generation: int) -> Consumer:
        key = (topic, partition, generation)
        instance = self._instances.get(key)
        if instance is None:
            assert self._route.consumer is not None
            # What a consumer is for is set before its own __init__, which may want it.
            instance = self._route.consumer.__new__(self._route.consumer)
            instance.app, instance.topic, instance.partition = self._server.app, topic, partition
            instance._member = self._server.member
            instance.__init__()  # type: ignore[misc]
            self._instances[key] = instance
        return instance

    def _forget(self, hook: HookJob) -> None:
        if hook.name != "assigned":
            self._instances.pop((hook.topic, hook.partition, hook.generation), None)
            self._not_ready.discard((hook.topic, hook.partition, hook.generation))

    def _on_hook_failed(self, hook: HookJob, error: BaseException) -> None:
        if hook.name == "assigned":
            key = (hook.topic, hook.partition, hook.generation)
            self._instances.pop(key, None)
            self._not_ready.add(key)
        self._server.app.events.emit(
            "hook.failed",
            hook=hook.name,
            handler=self._route.name,
            topic=hook.topic,
            partition=hook.partition,
            error=error,
        )


class AsyncExecutor(Executor):
    """As `Executor`, for `async def`; runs on the runtime's event loop."""

    async def run_job_async(self, job: Job) -> None:
        """Process a batch and give the job back."""
        try:
            if self._route.consumer is not None:
                await self._consume_async(job)
            else:
                await self._call_async(job)
        except Exception as error:
            recovery.fail(self._server, self._route, job, error)
        else:
            self._complete(job)

    async def run_hook_async(self, hook: HookJob) -> None:
        """Run a hook and give the partition back."""
        try:
            if self._route.consumer is not None:
                instance = self._instance(hook.topic, hook.partition, hook.generation)
                outcome = getattr(instance, hook.name)()
                if inspect.isawaitable(outcome):
                    await outcome
        except Exception as error:
            self._on_hook_failed(hook, error)
        finally:
            self._forget(hook)
            hook.finish()

    async def _call_async(self, job: Job) -> None:
        sent: list[DeliveryHandle] = []
        done: Message[Any] | None = None
        message: Message[Any] | None = None
        batch = job.batch(self._route.decoder)
        try:
            for message in batch:
                if self._route.decoder is not None:
                    message.value  # noqa: B018
                self._send_on(message, await self._route.function(message), sent)
                done = message
        except BaseException:
            batch.detach()
            for handle in sent:
                await handle
            mark_done(job, done)
            raise
        message = done = None
        if getrefcount(batch) > ALONE:
            batch.detach()
        for handle in sent:
            await handle

    async def _consume_async(self, job: Job) -> None:
        instance = self._instance(job.topic, job.partition, job.generation)
        if self._not_ready:
            outcome = self._try_again_to_assign(job, instance.assigned)
            if inspect.isawaitable(outcome):
                await outcome
        batch = job.batch(self._route.decoder)
        instance._job = job
        try:
            await instance.consume(batch)
        except BaseException:
            batch.detach()
            raise
        finally:
            instance._job = None
        if getrefcount(batch) > ALONE:
            batch.detach()


def mark_done(job: Job, message: Message[Any] | None) -> None:
    """Say how far a failed job came."""
    if message is not None:
        with contextlib.suppress(FencedError):
            job.done(message.offset)


def check_delivered(handles: list[DeliveryHandle]) -> None:
    """Wait until everything sent is acknowledged; raises the first refusal."""
    _native.wait_all(handles)
    for handle in handles:
        handle.result()
