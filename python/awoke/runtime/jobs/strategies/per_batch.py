"""A consumer class: called once for each batch, on the instance of its assignment."""

from __future__ import annotations

import contextlib
from typing import Any

from awoke._native import Batch, Job
from awoke.declare.consumer import current_job
from awoke.declare.handlers import check_ran
from awoke.observe.tracing import Tracer
from awoke.runtime.jobs.handler_calls import HandlerCalls
from awoke.runtime.jobs.instances import Instances
from awoke.runtime.jobs.lent import LentBatches, detach_kept
from awoke.waiting.drive import FlowLock

NO_SPAN: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


class PerBatch:
    """Calls `consume` of a route's consumers."""

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
