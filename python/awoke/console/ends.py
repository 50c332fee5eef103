"""Where reading of a topic begins, and when it is read to the end that it had then, however many records follow.

The end that a reader finds never comes where records are written all the time: the brokers have always one more. Starts
are offsets, and not "earliest" or a number of last ones: librdkafka 2.12 asks for such an offset half a second late,
because it has no leader of the partition yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from awoke._native import Message
from awoke.admin import Admin

CLIENT = {
    "fetch.message.max.bytes": "131072",
    "queued.max.messages.kbytes": "4096",
    "fetch.queue.backoff.ms": "10",
}
"""Properties of a client that reads topics of the console. Larger fetches of compressed records take much memory."""


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


class Extent(NamedTuple):
    """The offsets of a topic at one time, by partition."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]

    @classmethod
    def of(cls, admin: Admin, topic: str, timeout_s: float) -> Extent:
        """Asks the brokers. Blocks up to `timeout_s` for each of two requests.

        Raises:
            UnknownTopic; BrokerUnreachable; AuthorizationFailed; OperationTimeout.
        """
        return cls(admin.start_offsets(topic, timeout_s), admin.end_offsets(topic, timeout_s))

    def last(self, count: int | None) -> dict[int, int]:
        """Returns the starts from which the last `count` offsets of each partition are read; None reads all."""
        if count is None:
            return dict(self.starts)
        return {each: max(start, self.ends.get(each, start) - count) for each, start in self.starts.items()}

    def unread(self) -> Unread:
        """Returns the partitions that have something to be read."""
        return Unread({each: end for each, end in self.ends.items() if end > self.starts.get(each, 0)})
