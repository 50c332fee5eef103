"""The topics that keep the producers of a process waiting, and since when there is no room in their queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from awoke.console.client_statistics import OneClient
from awoke.console.producing_views import Output
from awoke.waiting.clock import wall_ms

GONE_MS = 30_000
"""A client without statistics for longer is closed, as one that was idle."""
OUTPUTS_MAX = 100
"""The most topics of a report."""
MESSAGES_MAX, KBYTES_MAX = 100_000, 1_048_576
"""librdkafka's defaults of `queue.buffering.max.messages` and `queue.buffering.max.kbytes`."""


class Sending(NamedTuple):
    """A topic to which one client sends."""

    answered: int
    """Messages since the client was made."""
    unanswered: int
    since_ms: int
    """When `answered` was first as it is, with messages that wait."""
    seen_ms: int
    stands: bool
    """True: it was so when it was looked at before, too."""


class Outputs:
    """The topics to which a process sends. Nothing here blocks. One thread at a time, except `waiting`."""

    def __init__(self) -> None:
        self._known: Mapping[tuple[str, str], Sending] = {}

    def take(self, client: OneClient) -> bool:
        """Takes the statistics of a producer; returns whether a topic came to stand still, or goes on."""
        if client.type != "producer":
            return False
        now_ms = wall_ms()
        found = {key: each for key, each in self._known.items() if now_ms - each.seen_ms <= GONE_MS}
        is_changed = False
        for topic, its in client.topics.items():
            before = found.get((client.name, topic))
            unanswered = sum(each.unanswered for each in its.partitions.values())
            answered = sum(each.msgs for each in its.partitions.values()) - unanswered
            stands = before is not None and before.unanswered > 0 < unanswered and before.answered == answered
            since_ms = before.since_ms if before is not None and stands else now_ms
            found[client.name, topic] = Sending(answered, unanswered, since_ms, now_ms, stands)
            is_changed |= stands != (before is not None and before.stands)
        self._known = found
        return is_changed

    def waiting(self, *, with_slow: bool = False) -> list[Output]:
        """Returns the topics of which nothing is acknowledged, the longest first. Any thread.

        `with_slow` adds topics that acknowledge messages, those with the most that wait first.
        """
        found: dict[str, Output] = {}
        for (_, topic), each in self._known.items():
            if wall_ms() - each.seen_ms > GONE_MS or not each.unanswered or not (each.stands or with_slow):
                continue
            output = found.setdefault(topic, Output(topic=topic, messages=0, since_ms=None))
            output.messages += each.unanswered
            if each.stands:
                output.since_ms = each.since_ms if output.since_ms is None else min(output.since_ms, each.since_ms)
        return sorted(found.values(), key=order_of)[:OUTPUTS_MAX]


def order_of(output: Output) -> tuple[bool, int]:
    """Returns the place of a topic among others."""
    return (True, -output.messages) if output.since_ms is None else (False, output.since_ms)


class FullQueue:
    """Since when the queue of the app's producer has no room. One thread."""

    def __init__(self, kafka: Mapping[str, object]) -> None:
        self._messages_max = number(kafka, "queue.buffering.max.messages", MESSAGES_MAX)
        self._bytes_max = number(kafka, "queue.buffering.max.kbytes", KBYTES_MAX) * 1_024
        self.since_ms: int | None = None

    def look(self, messages: int, size_bytes: int) -> None:
        """Notes what waits for its delivery report now."""
        next_bytes = size_bytes // messages if messages else 0  # What one more needs, if it is as large as the others.
        is_full = 0 < self._messages_max <= messages or (messages > 0 and size_bytes + next_bytes > self._bytes_max)
        self.since_ms = None if not is_full else wall_ms() if self.since_ms is None else self.since_ms


def number(kafka: Mapping[str, object], name: str, default: int) -> int:
    """Returns a property that is a number."""
    try:
        return int(str(kafka.get(name, default)))
    except ValueError:
        return default  # librdkafka refuses it, and says so.
