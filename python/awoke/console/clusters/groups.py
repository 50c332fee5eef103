"""Lists and shows consumer groups: members, committed offsets and lag. Each function blocks until the brokers answer.

The lag comes from the brokers: right for paused partitions, and for groups without members.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from awoke.admin import Admin, GroupInfo, MemberInfo
from awoke.console.access import TIMEOUT_S
from awoke.console.clusters.views import GroupDetail, GroupPlace, GroupRow, GroupsView, MemberView
from awoke.errors import KafkaError, OperationTimeout

PAGE = 100
"""The groups of a page."""
PLACES_MAX = 1_000_000

Place = tuple[str, int]
"""Topic and partition."""


def list_groups(admin: Admin, search: str = "", at: int = 0, limit: int = PAGE) -> GroupsView:
    """Returns a page of the groups whose name has a text in it, by name.

    Raises:
        KafkaError: A broker did not list its groups. BrokerUnreachable; AuthorizationFailed.
    """
    found = [each for each in admin.list_groups(TIMEOUT_S) if search.lower() in each.name.lower()]
    rows = [
        GroupRow(name=each.name, state=each.state, kind=each.kind, is_simple=each.is_simple)
        for each in found[at : at + limit]
    ]
    return GroupsView(groups=rows, total=len(found), at=at)


def show_group(
    admin: Admin, name: str, places_max: int = PLACES_MAX, known: Mapping[Place, int | None] | None = None
) -> GroupDetail:
    """Returns one group with its members, and the offsets and the lag of each partition.

    A group of more partitions than `places_max` has their committed offsets alone, and no lag: `logs_of` asks for the
    rest of some partitions. `known` are its committed offsets, where they were asked just now.

    Raises:
        UnknownGroup; BrokerUnreachable; AuthorizationFailed.
    """
    found = admin.describe_group(name, TIMEOUT_S)
    committed = known if known is not None else admin.group_offsets(name, TIMEOUT_S)
    owners = {place: each for each in found.members for place in each.partitions}
    places = sorted({*committed, *owners})
    is_all = len(places) <= places_max
    topics = sorted({topic for topic, _ in places}) if is_all else []
    starts, ends = offsets_of(admin.start_offsets, topics), offsets_of(admin.end_offsets, topics)
    stable = offsets_of(admin.stable_offsets, topics)
    rows = [
        place_of(each, committed.get(each), (starts.get(each), stable.get(each), ends.get(each)), owners.get(each))
        for each in places
    ]
    return GroupDetail(
        name=found.name,
        state=found.state,
        kind=found.kind,
        protocol=found.protocol,
        coordinator=None if found.coordinator is None else found.coordinator.address,
        lag=sum(each.lag or 0 for each in rows) if is_all else None,
        members=members_of(found),
        places=rows,
    )


def logs_of(admin: Admin, places: Sequence[GroupPlace]) -> list[GroupPlace]:
    """Returns these partitions of a group with the offsets of their logs and the lag. Blocks."""
    by_topic: dict[str, list[int]] = {}
    for each in places:
        by_topic.setdefault(each.topic, []).append(each.partition)

    def asked(ask: Callable[..., Mapping[int, int]]) -> dict[Place, int]:
        return offsets_of(lambda topic, timeout_s: ask(topic, timeout_s, partitions=by_topic[topic]), by_topic)

    starts, stable, ends = asked(admin.start_offsets), asked(admin.stable_offsets), asked(admin.end_offsets)
    found = []
    for each in places:
        place = (each.topic, each.partition)
        made = place_of(place, each.committed, (starts.get(place), stable.get(place), ends.get(place)))
        found.append(msgspec.structs.replace(made, member=each.member, client_id=each.client_id))
    return found


def members_of(group: GroupInfo) -> list[MemberView]:
    """Returns the members of a group, by id."""
    return [
        MemberView(
            id=each.id,
            client_id=each.client_id,
            host=each.host,
            static_id=each.static_id,
            partitions=len(each.partitions),
        )
        for each in group.members
    ]


def place_of(
    place: Place,
    committed: int | None,
    log: tuple[int | None, int | None, int | None],
    owner: MemberInfo | None = None,
) -> GroupPlace:
    """Returns a partition of a group. `log` has its first offset, its last stable offset and its end."""
    start, stable, end = log
    return GroupPlace(
        topic=place[0],
        partition=place[1],
        committed=committed,
        start=start,
        stable=stable,
        end=end,
        lag=lag_of(committed, end),
        stable_lag=lag_of(committed, stable),
        member=None if owner is None else owner.id,
        client_id=None if owner is None else owner.client_id,
        note=_note(committed, start, stable, end),
    )


def lag_of(committed: int | None, end: int | None) -> int | None:
    """Returns the offsets that are not committed; None where one of the two is not known."""
    return None if committed is None or end is None else max(0, end - committed)


def offsets_of(ask: Callable[[str, float], Mapping[int, int]], topics: Iterable[str]) -> dict[Place, int]:
    """Returns offsets by place; of topics that can't be asked none. Blocks."""
    found: dict[Place, int] = {}
    for topic in topics:
        with contextlib.suppress(KafkaError, OperationTimeout):  # It was deleted, or its leader is away.
            found |= {(topic, partition): offset for partition, offset in ask(topic, TIMEOUT_S).items()}
    return found


def _note(committed: int | None, start: int | None, stable: int | None, end: int | None) -> str | None:
    if end is None:
        return "the partition can't be asked: it was deleted, or its leader is away"
    if committed is not None and start is not None and committed < start:
        return f"{start - committed} offsets were deleted before they were read"
    if committed is not None and committed > end:
        return "the committed offset is beyond the end: the log was cut, or the topic made again"
    if stable is not None and stable < end:
        return f"an open transaction holds back {end - stable} offsets"
    return None
