"""Reads a page of messages: the newest, the first, from an offset or a time, and the neighbours of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from awoke._native import Message
from awoke.admin import Admin
from awoke.console.access import READ_TIMEOUT_S, TIMEOUT_S, Brokers
from awoke.console.explorer.parts import DecodedParts
from awoke.console.explorer.views import MessagesView, PartitionRange, Where
from awoke.declare.starts import Start
from awoke.errors import AwokeError, ConfigError, UnknownTopic

LIMIT_MAX = 500
"""The most messages of a page."""
READ_MAX = 5_000
"""The most messages that are read for a page; with many partitions, fewer of each."""
CLIENT = {"fetch.message.max.bytes": "131072", "queued.max.messages.kbytes": "4096", "fetch.wait.max.ms": "20"}
"""Properties of a client that reads a few messages: no more are fetched than are shown, and a gap is no long wait."""


def read_page(brokers: Brokers, where: Where, parts: DecodedParts) -> MessagesView:
    """Returns a page of messages. Blocks.

    Raises:
        UnknownTopic: There is no such topic or partition. ConfigError: The place is not complete. OperationTimeout;
        AuthorizationFailed; BrokerUnreachable.
    """
    check(where)
    with brokers.admin() as admin:
        ranges = ranges_of(admin, where.topic)
    if where.partition is not None:
        ranges = [each for each in ranges if each.partition == where.partition]
        if not ranges:
            text = f"topic {where.topic!r} has no partition {where.partition}"
            raise UnknownTopic(text, 3, "UNKNOWN_TOPIC_OR_PART")
    messages, notes = _read(brokers, where, ranges)
    view = MessagesView(where=where, messages=[parts.message(each) for each in messages], ranges=ranges, notes=notes)
    if where.partition is not None:
        view.earlier, view.later = neighbours(where, ranges[0], [each.offset for each in messages])
    return view


def read_one(brokers: Brokers, topic: str, partition: int, offset: int) -> Message[Any, Any]:
    """Returns the message at a place. Blocks.

    Raises:
        AwokeError: There is no message at that offset. UnknownTopic; OperationTimeout; AuthorizationFailed.
    """
    with brokers.admin() as admin:
        ranges = {each.partition: each for each in ranges_of(admin, topic)}
    if partition not in ranges:
        raise UnknownTopic(f"topic {topic!r} has no partition {partition}", 3, "UNKNOWN_TOPIC_OR_PART")
    if ranges[partition].start <= offset < ranges[partition].end:
        with brokers.reader(topic, {partition: offset}, kafka=CLIENT) as reader:
            for message in reader.read_up_to(1, READ_TIMEOUT_S):
                if message.offset == offset:
                    return message
    raise AwokeError(f"{topic}[{partition}] has no message at offset {offset}")


def check(where: Where) -> None:
    """Refuses a place that is not complete.

    Raises:
        ConfigError: It is not.
    """
    if not 1 <= where.limit <= LIMIT_MAX:
        raise ConfigError(f"limit is a number from 1 to {LIMIT_MAX}, not {where.limit}", "limit")
    if where.at in ("offset", "around") and (where.partition is None or where.offset is None):
        raise ConfigError(f"{where.at} needs a partition and an offset", "offset")
    if where.offset is not None and where.offset < 0:
        raise ConfigError(f"an offset is not negative, and is {where.offset}", "offset")
    if where.at == "time" and not 0 <= (where.time_ms if where.time_ms is not None else -1) < 1 << 47:
        raise ConfigError("time needs a time since 1970", "time")


def ranges_of(admin: Admin, topic: str) -> list[PartitionRange]:
    """Returns the offsets that each partition has now. Blocks."""
    starts, ends = admin.start_offsets(topic, TIMEOUT_S), admin.end_offsets(topic, TIMEOUT_S)
    return [PartitionRange(partition=each, start=starts[each], end=ends[each]) for each in sorted(starts.keys() & ends)]


def _read(brokers: Brokers, where: Where, ranges: list[PartitionRange]) -> tuple[list[Message[Any, Any]], list[str]]:
    starts = starts_of(where, ranges)
    if not starts:
        return [], []
    count, notes = where.limit, []
    if len(starts) * count > READ_MAX:
        count = max(1, READ_MAX // len(starts))
        notes.append(f"of each partition, {count} messages were read: name a partition for more")
    if where.at == "newest":
        starts = {each.partition: max(each.start, each.end - count) for each in ranges if each.partition in starts}
    with brokers.reader(where.topic, starts, kafka=CLIENT) as reader:
        found = list(reader.read_up_to(count, READ_TIMEOUT_S))
    is_newest = where.at == "newest"
    found.sort(key=lambda each: (each.timestamp_ms or 0, each.offset) if is_newest else (each.partition, each.offset))
    if where.at in ("time", "earliest"):
        found.sort(key=lambda each: (each.timestamp_ms or 0, each.partition, each.offset))
    return (found[-where.limit :][::-1] if is_newest else found[: where.limit]), notes


def starts_of(where: Where, ranges: list[PartitionRange]) -> Mapping[int, Start]:
    """Returns where reading begins, by partition; of partitions that have nothing there none."""
    found: dict[int, Start] = {}
    for each in ranges:
        if each.start == each.end:
            continue
        if where.at == "time":
            found[each.partition] = datetime.fromtimestamp((where.time_ms or 0) / 1_000, UTC)
        elif where.at in ("offset", "around"):
            offset = (where.offset or 0) - (where.limit // 2 if where.at == "around" else 0)
            if offset < each.end:
                found[each.partition] = max(offset, each.start)
        else:
            found[each.partition] = each.start
    return found


def neighbours(where: Where, log: PartitionRange, offsets: list[int]) -> tuple[Where | None, Where | None]:
    """Returns the pages before and after one of a partition with these offsets; None where there is none."""
    if not offsets:
        return None, None
    first, last = min(offsets), max(offsets)
    base = msgspec.structs.replace(where, at="offset", time_ms=None)
    earlier = msgspec.structs.replace(base, offset=max(log.start, first - where.limit))
    later = msgspec.structs.replace(base, offset=last + 1)
    return earlier if first > log.start else None, later if last + 1 < log.end else None
