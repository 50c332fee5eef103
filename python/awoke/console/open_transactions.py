"""Finds the open transactions that keep messages from consumer groups, and since when each of them does."""

from __future__ import annotations

from typing import NamedTuple

from awoke.console.views import GroupPartition, Partition

CONFIRMED_MS = 2_000
"""A transaction counts as left open once the brokers have told the same last stable offset for this long: one that
ends sooner is nothing to report."""
TRANSACTION_MS = 10_000
"""The same where only a report tells it, which may be as old."""


LIMIT_MS = 900_000
"""The default of the brokers' `transaction.max.timeout.ms`: no producer may ask for more time."""
SWEEP_MS = 10_000
"""Brokers look for transactions to abort this often."""


class OpenTransaction(NamedTuple):
    """A transaction that keeps the last stable offset of a partition behind its end."""

    stable: int
    """The offset of its first message."""
    end: int
    since_ms: int | None
    """When a process or this console first saw it; None: it was not seen before."""
    is_confirmed: bool
    """True: the brokers told it, after the report."""

    @property
    def waiting(self) -> int:
        """The messages from its first one to the end."""
        return max(0, self.end - self.stable)

    def is_hanging(self, now_ms: int, limit_ms: int) -> bool:
        """Tells whether the brokers should have aborted it, by any producer: their coordinator has forgotten it."""
        return self.since_ms is not None and now_ms - self.since_ms > limit_ms + SWEEP_MS

    def is_left(self, now_ms: int) -> bool:
        """Tells whether it is open for long enough to be a reason."""
        least_ms = CONFIRMED_MS if self.is_confirmed else TRANSACTION_MS
        return self.since_ms is not None and now_ms - self.since_ms >= least_ms


def open_of(at: Partition | None, broker: GroupPartition | None) -> OpenTransaction | None:
    """Returns the open transaction of a partition, None without one: the brokers' answer corrects an older report."""
    told_ms = None if at is None else at.transaction_open_since_ms
    if broker is not None and broker.end_offset is not None and broker.committed is not None:
        stable, end, since_ms = broker.last_stable_offset, broker.end_offset, broker.transaction_open_since_ms
        if broker.committed >= end or (stable is not None and stable >= end):
            return None  # All is committed, or all that is not can be read.
        if told_ms is not None and at is not None and at.last_stable_offset == stable:
            since_ms = told_ms if since_ms is None else min(since_ms, told_ms)
        if stable is not None:
            return OpenTransaction(stable, end, since_ms, is_confirmed=True)
    if at is None or told_ms is None or at.last_stable_offset is None or at.end_offset is None:
        return None
    return OpenTransaction(at.last_stable_offset, at.end_offset, told_ms, is_confirmed=False)


def is_read_to(at: Partition, broker: GroupPartition | None, offset: int) -> bool:
    """Tells whether a process has done all messages before an offset.

    Markers of transactions are no messages: they move what was read and not what is done.
    """
    if any(each is not None and each >= offset for each in (at.position, None if broker is None else broker.committed)):
        return True
    is_idle = at.in_flight == 0 and not at.running and not at.failing
    return is_idle and at.read_offset is not None and at.read_offset >= offset


class SeenTransactions:
    """When one console first saw the open transaction of each partition. One thread."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}

    def oldest_ms(self) -> int | None:
        """Returns since when the oldest one is open; None: none is."""
        return min((since_ms for _, since_ms in self._seen.values()), default=None)

    def note(self, topic: str, partition: int, stable: int, end: int, now_ms: int) -> int | None:
        """Takes an answer of the brokers; returns since when the transaction is open, None where none is."""
        place = (topic, partition)
        if stable >= end:
            self._seen.pop(place, None)
            return None
        offset, since_ms = self._seen.get(place, (-1, now_ms))
        if offset != stable:
            since_ms = now_ms
        self._seen[place] = (stable, since_ms)
        return since_ms
