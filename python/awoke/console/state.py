"""Reads the state of an app: the reports and error records in its topics, and the offsets of its consumer groups."""

from __future__ import annotations

import collections
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke._native import Message
from awoke.admin import Admin
from awoke.console.open_transactions import LIMIT_MS, SeenTransactions
from awoke.console.stuck import reasons
from awoke.console.topics import ConsoleTopics
from awoke.console.views import (
    INTERVAL_MS,
    AppView,
    ErrorRecord,
    ErrorView,
    GroupPartition,
    GroupView,
    Interval,
    NodeView,
    Report,
    SecretFields,
)
from awoke.declare.reader import Reader
from awoke.errors import KafkaError, UnknownGroup, UnknownTopic
from awoke.operate.commands.views import MAJOR, Audit
from awoke.settings import Settings
from awoke.text.records import Integer, Moment, Name, decode
from awoke.waiting.clock import wall_ms

SILENT_AFTER = 3
"""Intervals without a report."""
OVERDUE_MS = 2_000
"""The time that a report may need to come, beyond its interval."""
ERRORS_MAX = 1_000
"""The last error records that are read."""
AUDIT_MAX = 1_000
"""The last records of commands that are read."""
TIMEOUT_S = 30.0
LIMIT = "transaction.max.timeout.ms"
NODES_MAX, NODES_BYTES_MAX, RECORD_BYTES_MAX = 5_000, 256_000_000, 1_048_588
"""The most processes that are kept, the most that their reports take, and the largest record of brokers' defaults."""
NODE_NAME_MAX = 500
GROUPS_MAX = 200
"""The most groups that the brokers are asked for."""
GONE_MAX = 10_000
"""The most secret fields of stopped processes that are kept; with more, only those of the last one."""

CLIENT = {
    "fetch.message.max.bytes": "131072",
    "queued.max.messages.kbytes": "4096",
    "fetch.queue.backoff.ms": "10",
}
"""Properties of a client that reads topics of the console. Larger fetches of compressed records take much memory."""

KINDS_MAX = 1_000
"""The most fingerprints. A further one takes the place of the one that has not happened for the longest time."""
MINUTE_MS = 60_000
MINUTES = 60
"""The last minutes of which the failures are counted."""


class Head(msgspec.Struct):
    """The fields of a report that tell whether this awoke reads it."""

    major: Integer
    at_ms: Moment | None = None
    node: Name | None = None
    state: Name | None = None
    interval_ms: Interval = INTERVAL_MS

    @property
    def is_newer(self) -> bool:
        """True of a later major version than this awoke reads."""
        return self.major > MAJOR

    @property
    def is_report(self) -> bool:
        """True of a report of this major version, and of anything of a later one."""
        return self.is_newer or None not in (self.at_ms, self.node, self.state)


class Heard(NamedTuple):
    """The last thing that was read of a process."""

    head: Head
    at_ms: int | None
    """When it was read, if it was written then; None of a report that was there before."""

    @property
    def due_ms(self) -> int:
        """The time at which the next report is overdue."""
        since_ms = (self.head.at_ms or 0) if self.at_ms is None else self.at_ms
        return since_ms + self.head.interval_ms + OVERDUE_MS


class SentReport(NamedTuple):
    """The last report of a process."""

    heard: Heard
    document: msgspec.Raw
    report: Report | None
    """None of a newer process. It is decoded once, and never changes."""


class State:
    """The content of the topics of an app, as read until now. One thread."""

    def __init__(self, app: str) -> None:
        self._app = app
        self._nodes: dict[str, SentReport] = {}
        self._new: dict[str, tuple[Heard, bytes]] = {}
        """The last reports that were not looked at yet. Most are replaced before: a topic has those of an hour."""
        self.kinds = ErrorKinds()
        self._audit: collections.deque[Audit] = collections.deque(maxlen=AUDIT_MAX)
        self.unreadable = 0
        self.transaction_limit_ms = LIMIT_MS
        """`transaction.max.timeout.ms` of the brokers, once it was asked for."""
        self.gone: list[SecretFields] | None = None
        """The secret fields that processes told which have stopped in order; None if none has."""

    def on_audit(self, message: Message[Any, Any]) -> None:
        """Keeps the record of a command."""
        if (audit := decode(message.value, Audit)) is None:
            self.unreadable += 1
        else:
            self._audit.append(audit)

    def on_report(self, message: Message[Any, Any], heard_ms: int | None = None) -> None:
        """Keeps the last report of a process, and none after its tombstone.

        `heard_ms` is the present time of a report that was written just now.
        """
        node = bytes(message.key or b"").decode(errors="replace")
        if message.value is None:
            self._forget(node)
            return
        head = decode(message.value, Head) if len(node) <= NODE_NAME_MAX else None
        if head is None or not head.is_report:
            self.unreadable += 1
            return
        self._new.pop(node, None)
        self._new[node] = Heard(head, heard_ms), bytes(message.value)
        self._bound()

    def _bound(self) -> None:
        """Drops the processes that were heard of first, while they are too many: a writer makes up their names."""
        while len(self._nodes.keys() | self._new) > NODES_MAX or self._size_bytes() > NODES_BYTES_MAX:
            for known in (self._nodes, self._new):
                if known:
                    known.pop(next(iter(known)))
                    self.unreadable += 1
                    break

    def _size_bytes(self) -> int:
        """Returns the size of all reports that are kept."""
        if len(self._nodes) + len(self._new) < NODES_BYTES_MAX // RECORD_BYTES_MAX:
            return 0  # They can't be too large.
        new = sum(len(value) for _, value in self._new.values())
        return new + sum(len(bytes(each.document)) for each in self._nodes.values())

    @property
    def has_nodes(self) -> bool:
        """True if a process has reported and not stopped in order."""
        return bool(self._nodes or self._new)

    def next_overdue(self, now_ms: int) -> tuple[int, int | None]:
        """Returns how many processes have an overdue report, and when that of a further one is overdue."""
        heard = {node: each.heard for node, each in self._nodes.items()} | {
            n: each for n, (each, _) in self._new.items()
        }
        due = [each.due_ms for each in heard.values()]
        later = [each for each in due if each >= now_ms]
        return len(due) - len(later), min(later, default=None)

    def _forget(self, node: str) -> None:
        """Forgets a process that has stopped in order, but not its secret fields: its messages are still there."""
        sent, (heard, value) = self._nodes.pop(node, None), self._new.pop(node, (None, None))
        report = None if sent is None else sent.report
        if value is not None and heard is not None and not heard.head.is_newer:
            report = decode(value, Report) or report
        if report is not None and report.secrets is not None:
            found = list(dict.fromkeys([*(self.gone or ()), *report.secrets]))
            self.gone = found if len(found) <= GONE_MAX else report.secrets

    def decode(self) -> dict[str, SentReport]:
        """Decodes the last report of each process, once, and returns all."""
        for node, (heard, value) in self._new.items():
            report = None if heard.head.is_newer else decode(value, Report)
            # msgspec does not look at the text of fields that it skips, nor at what is nested too deep in them.
            if (report is None and not heard.head.is_newer) or decode(value, dict[str, Any]) is None:
                self.unreadable += 1
                continue
            self._nodes.pop(node, None)
            self._nodes[node] = SentReport(heard, msgspec.Raw(value), report)
        self._new.clear()
        return self._nodes

    def on_error(self, message: Message[Any, Any]) -> ErrorRecord | None:
        """Counts an error record by its fingerprint and returns it; None if it is no such record."""
        record = decode(message.value, ErrorRecord)
        if record is None:
            self.unreadable += 1
            return None
        self.kinds.add(record)
        return record

    def forget_errors(self) -> None:
        """Forgets all error records: their topic is read again."""
        self.kinds.clear()

    def nodes(self, now_ms: int, *, is_current: bool = True) -> list[NodeView]:
        """Returns the processes that have reported and not stopped in order, by name.

        No report is overdue unless the state `is_current`: it may have been written, and not been read.
        """
        return [node_of(node, each, now_ms, is_current=is_current) for node, each in sorted(self.decode().items())]

    def reports(self) -> dict[str, Report]:
        """Returns the reports that this awoke understands, by process."""
        return {node: each.report for node, each in sorted(self.decode().items()) if each.report is not None}

    def groups(self) -> list[str]:
        """Returns the consumer groups that the reports name; that of the app's name where there is none."""
        found = {group for each in self.decode().values() if each.report is not None for group in each.report.groups}
        return sorted(found)[:GROUPS_MAX] or [self._app]

    def errors(self) -> list[ErrorView]:
        """Returns the failures by fingerprint, the last one first."""
        return self.kinds.views()

    def view(self, groups: list[GroupView], *, is_current: bool = True) -> AppView:
        """Returns the state of the app with these groups, and the reasons why it may be stuck.

        `is_current` as for `nodes`.
        """
        now_ms = wall_ms()
        self.decode()  # It counts records that can't be read.
        found = AppView(
            app=self._app,
            at_ms=now_ms,
            nodes=self.nodes(now_ms, is_current=is_current),
            groups=groups,
            errors=self.errors(),
            transaction_limit_ms=self.transaction_limit_ms,
            unreadable=self.unreadable,
            audit=list(reversed(self._audit)),
        )
        found.reasons = reasons(found, self.reports())
        return found


def node_of(node: str, sent: SentReport, now_ms: int, *, is_current: bool) -> NodeView:
    """Returns the view of a process."""
    head = sent.heard.head
    found = NodeView(
        node=node,
        at_ms=head.at_ms or 0,
        is_newer=head.is_newer,
        is_silent=False,
        is_overdue=is_current and now_ms > sent.heard.due_ms,
        heard_ms=sent.heard.at_ms,
        interval_ms=head.interval_ms,
        document=sent.document,
    )
    found.is_silent = found.unheard_ms(now_ms) > SILENT_AFTER * head.interval_ms
    return found


def read_view(app: str, settings: Settings, timeout_s: float = TIMEOUT_S) -> AppView:
    """Reads the topics of an app to their ends, and asks the brokers for the offsets of its groups. Blocks.

    Raises:
        UnknownTopic: The app has never reported. BrokerUnreachable; OperationTimeout; AuthorizationFailed.
    """
    topics, state = ConsoleTopics.of(app), State(app)
    given = reading(settings)
    with Admin(settings=settings) as admin:
        try:
            for message in read_now(admin, topics.reports, None, given, timeout_s):
                state.on_report(message)
        except UnknownTopic as error:
            text = f"app {app!r} sends no reports: there is no topic {topics.reports}; run it with console=True"
            raise UnknownTopic(text, error.code, error.code_name) from None
        with contextlib.suppress(UnknownTopic):
            for message in read_now(admin, topics.errors, ERRORS_MAX, given, timeout_s):
                state.on_error(message)
        with contextlib.suppress(UnknownTopic):
            for message in read_now(admin, topics.audit, AUDIT_MAX, given, timeout_s):
                state.on_audit(message)
        return state.view([group_of(admin, group, timeout_s) for group in state.groups()])


def reading(settings: Settings) -> dict[str, Any]:
    """Returns what a reader of the console's topics takes of the settings."""
    return {
        "bootstrap_servers": settings.bootstrap_servers,
        "kafka": {**settings.kafka, **CLIENT},
        "oauth_token": settings.oauth_token,
    }


def read_now(
    admin: Admin, topic: str, count: int | None, given: Mapping[str, Any], timeout_s: float
) -> Iterator[Message[Any, Any]]:
    """Yields the messages that a topic has now, at most the last `count`, and no further ones. Blocks.

    Raises:
        UnknownTopic; BrokerUnreachable; OperationTimeout; AuthorizationFailed.
    """
    extent = Extent.of(admin, topic, timeout_s)
    if not extent.is_empty:
        with Reader(topic, start=extent.last(count), admin=admin, **given) as reader:
            yield from reader.read_until_end(timeout_s)


class Extent(NamedTuple):
    """The offsets of a topic at one time, by partition.

    Readings start at offsets, and not at "earliest" or a number of last ones: librdkafka 2.12 asks for such an offset
    half a second late, because it has no leader of the partition yet.
    """

    starts: Mapping[int, int]
    ends: Mapping[int, int]

    @classmethod
    def of(cls, admin: Admin, topic: str, timeout_s: float) -> Extent:
        """Asks the brokers. Blocks up to `timeout_s` for each of two requests.

        Raises:
            UnknownTopic; BrokerUnreachable; AuthorizationFailed; OperationTimeout.
        """
        return cls(admin.start_offsets(topic, timeout_s), admin.end_offsets(topic, timeout_s))

    @property
    def is_empty(self) -> bool:
        """True if no partition has anything to be read. A reader would wait half a second for the end of such."""
        return all(self.ends.get(each, start) <= start for each, start in self.starts.items())

    def last(self, count: int | None) -> dict[int, int]:
        """Returns the starts from which the last `count` offsets of each partition are read; None reads all."""
        if count is None:
            return dict(self.starts)
        return {each: max(start, self.ends.get(each, start) - count) for each, start in self.starts.items()}


def group_of(admin: Admin, group: str, timeout_s: float, seen: SeenTransactions | None = None) -> GroupView:
    """Returns a group as the brokers see it now; of no members where they do not know it. Blocks.

    `seen` keeps since when transactions are open.
    """
    state, members, assigned = "unknown", 0, set[tuple[str, int]]()
    committed: dict[tuple[str, int], int] = {}
    with contextlib.suppress(UnknownGroup):
        found = admin.describe_group(group, timeout_s)
        state, members = found.state, len(found.members)
        assigned = {place for each in found.members for place in each.partitions}
        committed = admin.group_offsets(group, timeout_s)
    places = sorted({*committed, *assigned})
    ends = ends_of(admin, {topic for topic, _ in places}, timeout_s)
    partitions = [partition_of(place, committed.get(place), ends.get(place)) for place in places]
    add_stable(admin, partitions, seen or SeenTransactions(), timeout_s)
    return GroupView(group=group, state=state, members=members, partitions=partitions)


def partition_of(place: tuple[str, int], committed: int | None, end_offset: int | None) -> GroupPartition:
    """Returns a partition of a group with its lag: the messages that are not committed."""
    lag = None if committed is None or end_offset is None else max(0, end_offset - committed)
    return GroupPartition(topic=place[0], partition=place[1], committed=committed, end_offset=end_offset, lag=lag)


def add_stable(admin: Admin, partitions: Iterable[GroupPartition], seen: SeenTransactions, timeout_s: float) -> None:
    """Adds the last stable offset where messages are not committed: they may wait for a transaction. Blocks."""
    behind: dict[str, dict[int, GroupPartition]] = {}
    for each in partitions:
        if each.lag:
            behind.setdefault(each.topic, {})[each.partition] = each
    for topic, its in sorted(behind.items()):
        with contextlib.suppress(KafkaError):  # As for the ends.
            for number, offset in admin.stable_offsets(topic, timeout_s, partitions=list(its)).items():
                each = its[number]
                each.last_stable_offset = offset
                if each.end_offset is not None:
                    since_ms = seen.note(topic, number, offset, each.end_offset, wall_ms())
                    each.transaction_open_since_ms = since_ms


def transaction_limit_of(admin: Admin, timeout_s: float) -> int:
    """Asks all brokers for the longest time of a transaction, in milliseconds. Blocks.

    Raises:
        AuthorizationFailed: The settings of brokers may not be read. BrokerUnreachable; OperationTimeout.
    """
    found = [admin.describe_broker_configs(each.id, timeout_s) for each in admin.brokers(timeout_s)]
    limits = [each[LIMIT].value for each in found if LIMIT in each]
    return max((int(each) for each in limits if each is not None), default=LIMIT_MS)


def ends_of(admin: Admin, topics: Iterable[str], timeout_s: float) -> dict[tuple[str, int], int]:
    """Returns the offset after the last message, by place; of topics that can't be asked none. Blocks."""
    found: dict[tuple[str, int], int] = {}
    for topic in sorted(topics):
        with contextlib.suppress(KafkaError):  # It was deleted, or its leader is away: its lag is not known.
            found |= {(topic, partition): end for partition, end in admin.end_offsets(topic, timeout_s).items()}
    return found


class Kind:
    """The failures of one fingerprint."""

    __slots__ = ("count", "first_ms", "last", "minutes")

    def __init__(self, first: ErrorRecord) -> None:
        self.count, self.first_ms, self.last = 0, first.at_ms, first
        self.minutes = Counter[int]()

    def add(self, record: ErrorRecord) -> None:
        """Counts a record. Records of several processes may come in another order than their times."""
        self.count += 1
        self.first_ms = min(self.first_ms, record.at_ms)
        if record.at_ms >= self.last.at_ms:
            self.last = record
        self.minutes[record.at_ms // MINUTE_MS] += 1
        if len(self.minutes) > 2 * MINUTES:
            self.minutes = Counter(dict(sorted(self.minutes.items())[-MINUTES:]))


class ErrorKinds:
    """All failures by fingerprint. One thread."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self.count = 0
        """All records."""

    def add(self, record: ErrorRecord) -> None:
        """Counts a record."""
        kind = self._kinds.pop(record.fingerprint, None)
        if kind is None:
            kind = Kind(record)
            if len(self._kinds) >= KINDS_MAX:
                del self._kinds[next(iter(self._kinds))]
        self._kinds[record.fingerprint] = kind  # The last one is the last to have happened.
        kind.add(record)
        self.count += 1

    def clear(self) -> None:
        """Forgets all."""
        self._kinds.clear()
        self.count = 0

    def views(self) -> list[ErrorView]:
        """Returns the failures by fingerprint, the last one first."""
        found = [
            ErrorView(fingerprint=fingerprint, count=each.count, first_ms=each.first_ms, last=each.last)
            for fingerprint, each in self._kinds.items()
        ]
        return sorted(found, key=lambda each: -each.last.at_ms)

    def trends(self) -> dict[str, Mapping[int, int]]:
        """Returns the failures of each fingerprint by minute since 1970."""
        return {fingerprint: dict(each.minutes) for fingerprint, each in self._kinds.items()}
