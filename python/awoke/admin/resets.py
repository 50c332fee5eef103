"""The flows that move a group's committed offsets: first a plan, then the change."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from datetime import datetime

from awoke.admin.groups import Groups, counted_members
from awoke.admin.results import OffsetChange, ResetTo, Shift
from awoke.admin.topics import EARLIEST, LATEST, AdminTopics
from awoke.errors import AwokeError, ConfigError, GroupNotEmpty, UnknownGroup

NON_EMPTY_GROUP = 68


class Resets:
    """Plans and makes resets of offsets."""

    def __init__(self, topics: AdminTopics, groups: Groups) -> None:
        self._topics, self._groups = topics, groups

    async def plan(
        self, group: str, topics: Collection[str] | None, to: ResetTo, timeout_s: float
    ) -> list[OffsetChange]:
        check_target(to)
        if isinstance(topics, str):
            raise ConfigError(f"topics is a list of names, not {topics!r}", "topics")
        committed = await self._groups.offsets(group, timeout_s)
        if topics is None and not committed:
            text = f"group {group!r} has no committed offsets: name the topics"
            raise UnknownGroup(text, 69, "GROUP_ID_NOT_FOUND")
        wanted = sorted({topic for topic, _ in committed} if topics is None else set(topics))
        plan = []
        for topic in wanted:
            starts = await self._topics.offsets(topic, EARLIEST, timeout_s)
            ends = await self._topics.offsets(topic, LATEST, timeout_s)
            before = {partition: committed.get((topic, partition)) for partition in starts}
            targets = await self._targets(topic, to, starts, ends, before, timeout_s)
            for partition, target in sorted(targets.items()):
                if partition not in ends:
                    continue  # It was added meanwhile.
                start, end = starts[partition], ends[partition]
                after = min(max(target, start), end)
                place = (group, topic, partition, before[partition])
                plan.append(OffsetChange(*place, after, start, end, is_clamped=after != target))
        return plan

    async def reset(self, plan: Sequence[OffsetChange], timeout_s: float) -> None:
        groups = {each.group for each in plan}
        if len(groups) > 1:
            raise ConfigError(f"a plan is of one group, and this one of {', '.join(sorted(groups))}", "plan")
        for group in groups:
            with contextlib.suppress(UnknownGroup):  # Its first offsets make the group.
                members = (await self._groups.describe(group, timeout_s)).members
                if members:
                    text = f"reset offsets of group {group!r}: it has {counted_members(members)}; stop them first"
                    raise GroupNotEmpty(text, NON_EMPTY_GROUP, "NON_EMPTY_GROUP")
            await self._check_unchanged(group, plan, timeout_s)
            # A member that joins meanwhile is noticed by the broker, which refuses the change then.
            offsets = {(each.topic, each.partition): each.after for each in plan}
            await self._groups.alter_offsets(group, offsets, timeout_s)

    async def _check_unchanged(self, group: str, plan: Sequence[OffsetChange], timeout_s: float) -> None:
        """Refuses a plan that is older than a commit of the group."""
        committed = await self._groups.offsets(group, timeout_s)
        for each in plan:
            found = committed.get((each.topic, each.partition))
            if found != each.before:
                text = f"reset offsets of group {group!r}: {each.topic}[{each.partition}] was committed meanwhile"
                raise AwokeError(f"{text} ({found}, and {each.before} in the plan); plan again")

    async def _targets(
        self,
        topic: str,
        to: ResetTo,
        starts: dict[int, int],
        ends: dict[int, int],
        before: dict[int, int | None],
        timeout_s: float,
    ) -> dict[int, int]:
        """Returns the wanted offset of each partition. A shift leaves out those without a committed offset."""
        if isinstance(to, Shift):
            return {partition: offset + to.by for partition, offset in before.items() if offset is not None}
        if isinstance(to, datetime):
            return await self._topics.offsets_at(topic, max(int(to.timestamp() * 1_000), 0), timeout_s)
        if isinstance(to, int):
            return dict.fromkeys(starts, to)
        return starts if to == "earliest" else ends


def check_target(to: ResetTo) -> None:
    """Checks the target of a reset.

    Raises:
        ConfigError: It is none.
    """
    if isinstance(to, Shift) and isinstance(to.by, int):
        return
    if isinstance(to, datetime):
        if to.tzinfo is None:
            raise ConfigError(f"to is a time without a time zone: {to!r}; add tzinfo, or call astimezone()", "to")
        return
    if isinstance(to, int) and not isinstance(to, bool):
        if to < 0:
            raise ConfigError(f"to is a negative offset, {to}; Shift({to}) moves offsets back", "to")
        return
    if to not in ("earliest", "latest"):
        text = f"to is 'earliest', 'latest', a datetime with a time zone, an offset or a Shift, not {to!r}"
        raise ConfigError(text, "to")
