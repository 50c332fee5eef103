"""The last stable offset of each partition that is read: an open transaction keeps it behind the end.

It comes from librdkafka's statistics, which the settings turn on where the console is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from awoke.console.client_statistics import OneClient, PartitionStatistics
from awoke.waiting.clock import wall_ms


class Stable(NamedTuple):
    """The last stable offset of a partition."""

    offset: int
    open_since_ms: int | None
    """When it was first seen there, and behind the end; None: no transaction is open."""
    read_offset: int | None = None
    """One past the last message that was handed on, if none waits; markers of transactions count."""


class StableOffsets:
    """The last stable offsets of one process. Nothing here blocks. Any thread."""

    def __init__(self) -> None:
        self._known: Mapping[tuple[str, int], Stable] = {}

    def take(self, client: OneClient) -> bool:
        """Takes the statistics of a consumer; returns whether an open transaction has appeared or ended.

        One thread at a time.
        """
        if client.type != "consumer":
            return False
        found, is_changed = dict(self._known), False
        for topic, its in client.topics.items():
            for number, at in its.partitions.items():
                place = (topic, int(number))
                if int(number) >= 0 and at.ls_offset >= 0:
                    before = found.get(place)
                    now = found[place] = after(before, at)
                    is_changed |= now.open_since_ms != (None if before is None else before.open_since_ms)
        self._known = found
        return is_changed

    def find(self, topic: str, partition: int) -> Stable | None:
        """Returns the last stable offset of a partition; None where it is not known."""
        return self._known.get((topic, partition))


def after(before: Stable | None, at: PartitionStatistics) -> Stable:
    """Returns the last stable offset now; it keeps its time while it stays at one offset."""
    if at.ls_offset >= at.hi_offset:
        return Stable(at.ls_offset, None, at.read_offset)
    since_ms = before.open_since_ms if before is not None and before.offset == at.ls_offset else None
    return Stable(at.ls_offset, wall_ms() if since_ms is None else since_ms, at.read_offset)
