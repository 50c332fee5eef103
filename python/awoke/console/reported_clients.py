"""What the Kafka clients of a process tell its reports: open and aborted transactions, and topics that keep it waiting.

Most of it comes from librdkafka's statistics, which the settings turn on where the console is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from awoke.console.views import AbortedByCode, OutputTopic
from awoke.observe.events import ClientStatistics, Event, TransactionAbort
from awoke.waiting.clock import wall_ms

GONE_MS = 30_000
"""A client without statistics for longer is closed, as one that was idle."""
OUTPUTS_MAX = 100
"""The most topics of a report."""
MESSAGES_MAX, KBYTES_MAX = 100_000, 1_048_576
"""librdkafka's defaults of `queue.buffering.max.messages` and `queue.buffering.max.kbytes`."""
CODES_MAX = 50
"""The most codes that are told apart; a later one replaces the one that was seen longest ago."""
TEXT_MAX = 500


class PartitionStatistics(msgspec.Struct, frozen=True):
    """A partition in librdkafka's JSON."""

    hi_offset: int = -1
    ls_offset: int = -1
    next_offset: int = -1
    fetchq_cnt: int = 0
    msgs: int = 0
    """Of a producer: the messages that it was given."""
    msgq_cnt: int = 0
    xmit_msgq_cnt: int = 0
    msgs_inflight: int = 0

    @property
    def read_offset(self) -> int | None:
        """One past what was fetched, markers of transactions included; None while fetched messages wait."""
        return self.next_offset if self.next_offset >= 0 and self.fetchq_cnt == 0 else None

    @property
    def unanswered(self) -> int:
        """The messages of a producer that wait, or are on their way."""
        return self.msgq_cnt + self.xmit_msgq_cnt + self.msgs_inflight


class TopicStatistics(msgspec.Struct, frozen=True):
    """A topic in librdkafka's JSON."""

    partitions: Mapping[str, PartitionStatistics] = {}


class OneClient(msgspec.Struct, frozen=True):
    """A client in librdkafka's JSON."""

    type: str
    name: str = ""
    """Of one connection."""
    topics: Mapping[str, TopicStatistics] = {}


_decoder = msgspec.json.Decoder(OneClient)


def client_of(event: Event) -> OneClient | None:
    """Returns the statistics of an event; None where librdkafka has changed their form: nothing is known then."""
    assert isinstance(event, ClientStatistics)
    try:
        return _decoder.decode(event.json)
    except msgspec.MsgspecError:
        return None


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


class ReportedOutputs:
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

    def waiting(self, *, with_slow: bool = False) -> list[OutputTopic]:
        """Returns the topics of which nothing is acknowledged, the longest first. Any thread.

        `with_slow` adds topics that acknowledge messages, those with the most that wait first.
        """
        found: dict[str, OutputTopic] = {}
        for (_, topic), each in self._known.items():
            if wall_ms() - each.seen_ms > GONE_MS or not each.unanswered or not (each.stands or with_slow):
                continue
            output = found.setdefault(topic, OutputTopic(topic=topic, messages=0, since_ms=None))
            output.messages += each.unanswered
            if each.stands:
                output.since_ms = each.since_ms if output.since_ms is None else min(output.since_ms, each.since_ms)
        return sorted(found.values(), key=order_of)[:OUTPUTS_MAX]


def order_of(output: OutputTopic) -> tuple[bool, int]:
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


class AbortedTransactions:
    """The aborted transactions. Nothing here blocks."""

    def __init__(self) -> None:
        self._known: dict[str, AbortedByCode] = {}

    def on_event(self, event: Event) -> None:
        """Counts one. One thread at a time."""
        assert isinstance(event, TransactionAbort)
        known = dict(self._known)  # Others may read the old one.
        before = known.pop(event.code_name, None)
        if len(known) >= CODES_MAX:
            del known[next(iter(known))]
        known[event.code_name] = AbortedByCode(
            code=event.code_name,
            count=1 if before is None else before.count + 1,
            last_ms=wall_ms(),
            last_text=event.text[:TEXT_MAX],
        )
        self._known = known

    def all(self) -> list[AbortedByCode]:
        """Returns them, the last one first. Any thread."""
        return list(reversed(self._known.values()))
