"""Batches that librdkafka's memory is lent to, for as long as their job runs.

User code that keeps a message, or a batch, beyond its job would keep librdkafka's buffers and client alive. So a
job keeps a weak reference only. Where the batch is still alive when the job is over, it is detached: its messages
are copied.
"""

from __future__ import annotations

import weakref
from typing import Any

from awoke._native import Batch, Job
from awoke.declare.routing import Route
from awoke.observe.events import Events, MessagesExpired, MessagesFiltered
from awoke.runtime.failures.undecodable import Undecodable
from awoke.waiting.clock import wall_ms

Lease = weakref.ref[Batch[Any]]
"""Refers to the batch that owns the memory. It is alive as long as any of its messages or parts is."""


class LentBatches:
    """Makes the batches of one route's jobs. Any thread."""

    def __init__(self, route: Route, events: Events, undecodable: Undecodable) -> None:
        self._decoders, self._flow, self._skips_some = route.decoders, route.flow, route.skips_some
        self._events, self._undecodable = events, undecodable

    def of(self, job: Job) -> tuple[Batch[Any] | None, Lease]:
        """Returns the messages of a job that are to be processed, or None for none of them, and the lease.

        The caller drops its own references to batch and messages, and then calls `detach_kept`; or it detaches the
        batch where user code has raised, because the exception keeps the message.
        """
        if self._undecodable.offsets:
            self._undecodable.truncate(job)
        batch = job.batch(self._decoders)
        lease = weakref.ref(batch)
        return self._wanted(batch) if self._skips_some else batch, lease

    def _wanted(self, batch: Batch[Any]) -> Batch[Any] | None:
        now_ms = wall_ms()
        try:
            reasons = [self._flow.skip_reason(message, now_ms) for message in batch]
        except BaseException:
            batch.detach()
            raise
        if (expired := reasons.count("expired")) > 0:
            self._events.emit(MessagesExpired(topic=batch.topic, count=expired))
        if (filtered := reasons.count("filtered")) > 0:
            self._events.emit(MessagesFiltered(topic=batch.topic, count=filtered))
        places = [place for place, reason in enumerate(reasons) if reason is None]
        if len(places) == len(reasons):
            return batch
        return batch.pick(places) if places else None


def lease_of(batch: Batch[Any]) -> Lease:
    """Returns the weak reference by which `detach_kept` finds a batch that is kept."""
    return weakref.ref(batch)


def detach_kept(lease: Lease) -> None:
    """Copies the messages of a batch that user code has kept. Does not block. The job itself holds no reference to
    it."""
    batch = lease()
    if batch is not None:
        batch.detach()
