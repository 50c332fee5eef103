"""The flows for consumer groups and their committed offsets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from awoke.admin.connection import Connection, Entries, Offsets, Refusal, check, check_offsets, refused
from awoke.admin.results import BrokerInfo, GroupInfo, GroupListing, MemberInfo
from awoke.errors import (
    UNKNOWN_GROUP_CODE,
    UNKNOWN_TOPIC_CODES,
    AwokeError,
    ConfigError,
    GroupNotEmpty,
    KafkaError,
    UnknownGroup,
)

MOVING_CODES = frozenset({14, 15, 16})
"""A group's coordinator is loading, not available, or another broker: it has just moved, or Kafka has just started."""
OCCUPIED_CODES = frozenset({22, 25, 27, 68, 86})
"""A broker's answers to a change of the offsets of a group with members.

Illegal generation (22), unknown member (25: the request names none), rebalance in progress (27), the group is not empty
(68), or it reads the topic (86)."""
NAMED_MAX = 3
"""The most members that an error names."""


def _of_entries(answer: Entries | Offsets) -> list[Refusal | None]:
    return [entry[-1] for entry in answer]


def _of_groups(answer: list[Any]) -> list[Refusal | None]:
    return [group[1] for group in answer]


def _of_list(answer: tuple[Any, list[Refusal]]) -> list[Refusal]:
    return answer[1]


class Groups:
    """The requests about groups of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def all(self, timeout_s: float) -> list[GroupListing]:
        found = await self._request("list_groups", None, timeout_s, "list groups", _of_list)
        listings: list[tuple[str, str, str, bool]] = found[0]
        refusals: list[Refusal] = found[1]
        if refusals:
            # Without the groups of a broker the list would look complete and be wrong.
            raise refused(f"list groups: {len(refusals)} of the brokers gave no list", refusals[0])
        groups = (GroupListing(name, state, kind.lower(), is_simple) for name, state, kind, is_simple in listings)
        return sorted(groups)

    async def describe(self, name: str, timeout_s: float) -> GroupInfo:
        what = f"describe group {name!r}"
        found: list[Any] = await self._request("describe_groups", [name], timeout_s, what, _of_groups)
        group, refusal, state, kind, protocol, coordinator, members = found[0]
        if state == "Dead" and refusal is None:
            raise _unknown(name)
        self._check(name, refusal, what)
        broker = None if coordinator is None else BrokerInfo(coordinator[0], f"{coordinator[1]}:{coordinator[2]}")
        return GroupInfo(group, state, kind.lower(), protocol, broker, sorted(map(_member_info, members)))

    async def delete(self, name: str, timeout_s: float) -> None:
        what = f"delete group {name!r}"
        deleted: Entries = await self._request("delete_groups", [name], timeout_s, what)
        await self._check_changed(name, [refusal for _, refusal in deleted], what, timeout_s)

    async def offsets(self, name: str, timeout_s: float) -> dict[tuple[str, int], int]:
        what = f"list offsets of group {name!r}"
        offsets: Offsets = await self._request("group_offsets", name, timeout_s, what)
        check_offsets(offsets, what)
        return {(topic, partition): offset for topic, partition, offset, _ in offsets if offset >= 0}

    async def alter_offsets(self, name: str, offsets: Mapping[tuple[str, int], int], timeout_s: float) -> None:
        for (topic, partition), offset in offsets.items():
            if offset < 0:
                text = f"offset {offset} of {topic}[{partition}]: a committed offset must not be negative"
                raise ConfigError(text, "offsets")
        wanted = [(topic, partition, offset) for (topic, partition), offset in sorted(offsets.items())]
        if wanted:
            await self._change_offsets("alter_group_offsets", name, wanted, timeout_s)

    async def delete_offsets(self, name: str, partitions: Collection[tuple[str, int]], timeout_s: float) -> None:
        wanted = sorted(set(partitions))
        if wanted:
            await self._change_offsets("delete_group_offsets", name, wanted, timeout_s)

    async def _change_offsets(self, kind: str, name: str, wanted: object, timeout_s: float) -> None:
        what = f"{kind.partition('_')[0]} offsets of group {name!r}"
        try:
            changed: Offsets = await self._request(kind, (name, wanted), timeout_s, what)
        except UnknownGroup:
            raise _unknown(name) from None  # It has librdkafka's words.
        await self._check_changed(name, [refusal for _, _, _, refusal in changed], what, timeout_s)
        check_offsets(changed, what)

    async def _check_changed(self, name: str, refusals: list[Refusal | None], what: str, timeout_s: float) -> None:
        """Raises the error of a group that has members, or does not exist; an entry's own error is left to others."""
        for refusal in refusals:
            if refusal is not None and refusal[0] in OCCUPIED_CODES:
                raise await self._occupied(name, what, refusal, timeout_s)
            if refusal is not None and refusal[0] not in UNKNOWN_TOPIC_CODES:
                self._check(name, refusal, what)

    @staticmethod
    def _check(name: str, refusal: Refusal | None, what: str) -> None:
        if refusal is not None and refusal[0] == UNKNOWN_GROUP_CODE:
            raise _unknown(name)
        check([("", refusal)], what)

    async def _occupied(self, name: str, what: str, refusal: Refusal, timeout_s: float) -> KafkaError:
        """Returns the error of a group that has members, with their names where it can be described."""
        who = "it has members"
        with contextlib.suppress(AwokeError):
            members = (await self.describe(name, timeout_s)).members
            who = f"it has {counted_members(members)}" if members else who
        code, code_name, _ = refusal
        return GroupNotEmpty(f"{what}: {who}; stop them first", code, code_name)

    async def _request(
        self,
        kind: str,
        arguments: object,
        timeout_s: float,
        what: str,
        refusals_of: Callable[[Any], Iterable[Refusal | None]] = _of_entries,
    ) -> Any:
        """Sends a request, again while the group's coordinator is being found or loads its groups.

        A poll, and a known limit: a broker tells only when it is asked that it has become the coordinator.
        """
        until_s = time.monotonic() + timeout_s
        while True:
            try:
                answer = await self._connection.request(kind, arguments, timeout_s, what)
                is_moving = any(refusal is not None and refusal[0] in MOVING_CODES for refusal in refusals_of(answer))
                if not is_moving or time.monotonic() >= until_s:
                    return answer
            except KafkaError as error:
                if error.code not in MOVING_CODES or time.monotonic() >= until_s:
                    raise
            if not await self._connection.again():
                until_s = 0.0


def counted_members(members: Collection[MemberInfo]) -> str:
    """Returns the number of members as text, with the client ids and hosts of some."""
    named = [f"{each.client_id} on {each.host}" for each in members][:NAMED_MAX]
    rest = ", …" if len(members) > NAMED_MAX else ""
    return f"{len(members)} member{'s' if len(members) != 1 else ''} ({', '.join(named)}{rest})"


def _member_info(member: tuple[str, str, str, str | None, list[tuple[str, int]]]) -> MemberInfo:
    member_id, client_id, host, static_id, partitions = member
    return MemberInfo(member_id, client_id, host.removeprefix("/"), static_id or None, sorted(partitions))


def _unknown(name: str) -> UnknownGroup:
    return UnknownGroup(f"group {name!r} does not exist", UNKNOWN_GROUP_CODE, "GROUP_ID_NOT_FOUND")
