"""Tells when a topic is read to the end that it had at first, however many records come meanwhile.

The end that a reader finds never comes where records are written all the time: the brokers have always one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awoke._native import Message


class Unread:
    """The partitions that are not read to these ends yet. One thread."""

    def __init__(self, ends: Mapping[int, int]) -> None:
        self._ends = {partition: end for partition, end in ends.items() if end > 0}

    def take(self, message: Message[Any, Any]) -> None:
        """Notes that this message is read. Messages of a partition come in order."""
        if self._ends:
            end = self._ends.get(message.partition)
            # Not only the last offset: compaction, transactions and retention leave gaps.
            if end is not None and message.offset + 1 >= end:
                del self._ends[message.partition]

    def __bool__(self) -> bool:
        return bool(self._ends)
