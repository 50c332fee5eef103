"""Reads the state of an app: the reports and error records in its topics, and the offsets of its consumer groups."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from awoke._clock import wall_ms
from awoke._native import Message
from awoke.admin import Admin
from awoke.console.ends import CLIENT, Extent
from awoke.console.error_kinds import ErrorKinds
from awoke.console.stuck import reasons
from awoke.console.topics import ConsoleTopics
from awoke.console.views import (
    MAJOR,
    AppView,
    Audit,
    ErrorRecord,
    ErrorView,
    GroupPartition,
    GroupView,
    NodeView,
    Report,
)
from awoke.errors import KafkaError, UnknownGroup, UnknownTopic
from awoke.reader import Reader
from awoke.settings import Settings

SILENT_AFTER_MS = 30_000
"""Three intervals of reports."""
ERRORS_MAX = 1_000
"""The last error records that are read."""
AUDIT_MAX = 1_000
"""The last records of commands that are read."""
TIMEOUT_S = 30.0

_error_records = msgspec.json.Decoder(ErrorRecord)


class Sent(NamedTuple):
    """The last report of a process."""

    document: dict[str, Any]
    report: Report | None
    """None of a newer process. It is converted once, and never changes."""


class Head(msgspec.Struct):
    """The fields of a report that tell whether this awoke reads it."""

    major: int
    at_ms: int | None = None
    node: str | None = None
    state: str | None = None

    @property
    def is_report(self) -> bool:
        """True of a report of this major version, and of anything of a later one."""
        return self.major > MAJOR or None not in (self.at_ms, self.node, self.state)


class State:
    """The content of the topics of an app, as read until now. One thread."""

    def __init__(self, app: str) -> None:
        self._app = app
        self._nodes: dict[str, Sent] = {}
        self._new: dict[str, bytes] = {}
        """The last reports that were not looked at yet. Most are replaced before: a topic has those of an hour."""
        self.kinds = ErrorKinds()
        self._audit: collections.deque[Audit] = collections.deque(maxlen=AUDIT_MAX)
        self.unreadable = 0

    def on_audit(self, message: Message[Any, Any]) -> None:
        """Keeps the record of a command."""
        try:
            self._audit.append(msgspec.json.decode(message.value or b"", type=Audit))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.unreadable += 1

    def on_report(self, message: Message[Any, Any]) -> None:
        """Keeps the last report of a process, and none after its tombstone."""
        node = bytes(message.key or b"").decode(errors="replace")
        if message.value is None:
            self._nodes.pop(node, None)
            self._new.pop(node, None)
            return
        try:
            is_report = msgspec.json.decode(message.value, type=Head).is_report
        except (msgspec.MsgspecError, UnicodeDecodeError):
            is_report = False
        if is_report:
            self._new[node] = bytes(message.value)
        else:
            self.unreadable += 1

    def _take_new(self) -> dict[str, Sent]:
        """Decodes the last report of each process, once, and returns all."""
        for node, value in self._new.items():
            try:
                document = msgspec.json.decode(value, type=dict[str, Any])
                report = None if is_newer(document) else msgspec.convert(document, Report)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self.unreadable += 1
                continue
            self._nodes[node] = Sent(document, report)
        self._new.clear()
        return self._nodes

    def on_error(self, message: Message[Any, Any]) -> ErrorRecord | None:
        """Counts an error record by its fingerprint and returns it; None if it is no such record."""
        try:
            record = _error_records.decode(message.value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.unreadable += 1
            return None
        self.kinds.add(record)
        return record

    def forget_errors(self) -> None:
        """Forgets all error records: their topic is read again."""
        self.kinds.clear()

    def nodes(self, now_ms: int) -> list[NodeView]:
        """Returns the processes that have reported and not stopped in order, by name."""
        return [node_of(node, each.document, now_ms) for node, each in sorted(self._take_new().items())]

    def reports(self) -> dict[str, Report]:
        """Returns the reports that this awoke understands, by process."""
        return {node: each.report for node, each in sorted(self._take_new().items()) if each.report is not None}

    def groups(self) -> list[str]:
        """Returns the consumer groups that the reports name; that of the app's name where there is none."""
        found = {group for each in self._take_new().values() if each.report is not None for group in each.report.groups}
        return sorted(found) or [self._app]

    def errors(self) -> list[ErrorView]:
        """Returns the failures by fingerprint, the last one first."""
        return self.kinds.views()

    def view(self, groups: list[GroupView]) -> AppView:
        """Returns the state of the app with these groups, and the reasons why it may be stuck."""
        now_ms = wall_ms()
        self._take_new()  # It counts records that can't be read.
        found = AppView(
            app=self._app,
            at_ms=now_ms,
            nodes=self.nodes(now_ms),
            groups=groups,
            errors=self.errors(),
            unreadable=self.unreadable,
            audit=list(reversed(self._audit)),
        )
        found.reasons = reasons(found, self.reports())
        return found


def is_newer(document: dict[str, Any]) -> bool:
    """Tells whether a report has a later major version than this awoke reads."""
    major = document.get("major")
    return isinstance(major, int) and major > MAJOR


def node_of(node: str, document: dict[str, Any], now_ms: int) -> NodeView:
    """Returns the view of a process."""
    at_ms = document.get("at_ms")
    at_ms = at_ms if isinstance(at_ms, int) else 0
    is_silent = now_ms - at_ms > SILENT_AFTER_MS
    return NodeView(node=node, at_ms=at_ms, is_newer=is_newer(document), is_silent=is_silent, document=document)


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
    unread = extent.unread()
    if not unread:
        return
    with Reader(topic, start=extent.last(count), **given) as reader:
        for message in reader.read_until_end(timeout_s):
            yield message
            unread.take(message)
            if not unread:
                return


def group_of(admin: Admin, group: str, timeout_s: float) -> GroupView:
    """Returns a group as the brokers see it now; of no members where they do not know it. Blocks."""
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
    return GroupView(group=group, state=state, members=members, partitions=partitions)


def partition_of(place: tuple[str, int], committed: int | None, end_offset: int | None) -> GroupPartition:
    """Returns a partition of a group with its lag: the messages that are not committed."""
    lag = None if committed is None or end_offset is None else max(0, end_offset - committed)
    return GroupPartition(topic=place[0], partition=place[1], committed=committed, end_offset=end_offset, lag=lag)


def ends_of(admin: Admin, topics: Iterable[str], timeout_s: float) -> dict[tuple[str, int], int]:
    """Returns the offset after the last message, by place; of topics that can't be asked none. Blocks."""
    found: dict[tuple[str, int], int] = {}
    for topic in sorted(topics):
        with contextlib.suppress(KafkaError):  # It was deleted, or its leader is away: its lag is not known.
            found |= {(topic, partition): end for partition, end in admin.end_offsets(topic, timeout_s).items()}
    return found
