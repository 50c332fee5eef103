"""An assigned partition and its progress: for metrics, health, reports and the last commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from awoke.text.durations import duration

UNOWNED_MAX = 10
"""More partitions without an owner are not named."""


class CommitGap(NamedTuple):
    """The distance from the first message of a partition that is not completed to the last that was begun."""

    messages: int
    done: int
    """The completed messages among them."""
    oldest_offset: int
    oldest_s: float
    """The time since the oldest was begun."""


EngineState = tuple[str, int, int | None, int | None, int | None, int | None, tuple[int, int, int, float] | None]
"""The fields of a `PartitionState`, as the engine gives them."""


class PartitionState(NamedTuple):
    """An assigned partition and its progress; None for what is not known yet."""

    topic: str
    partition: int
    stored: int | None
    committed: int | None
    position: int | None
    """The next offset to complete: the stored one, or else the one where reading began, or is to begin."""
    end_offset: int | None
    """One past the last message, as the last fetch saw it."""
    commit_gap: CommitGap | None
    """None where one job of a partition runs at a time, or all messages are completed."""

    @classmethod
    def of(cls, state: EngineState) -> PartitionState:
        """Returns the state from the engine's tuple."""
        topic, partition, stored, committed, position, end_offset, commit_gap = state
        gap = None if commit_gap is None else CommitGap(*commit_gap)
        return cls(topic, partition, stored, committed, position, end_offset, gap)

    @property
    def lag(self) -> int | None:
        """The messages that are not completed; None where that is not known yet."""
        if self.position is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.position)


def without_owner(group: str, partitions: Sequence[tuple[str, int]], total: int) -> str:
    """Returns the sentence about partitions that no member owns; `partitions` are some or all of the `total`."""
    first = [f"{topic}[{partition}]" for topic, partition in partitions[:UNOWNED_MAX]]
    names = ", ".join(first) + (", …" if total > len(first) else "")
    count = "1 partition has" if total == 1 else f"{total} partitions have"
    return f"{count} no owner in group {group}, and nobody reads {'it' if total == 1 else 'them'}: {names}"


def shared_with(group: str, apps: Sequence[str], topics: Sequence[str]) -> str:
    """Returns the sentence about members of a group that belong to another app, or read other topics."""
    if apps:
        return f"group {group} has members of another app, which take a part of the messages: {_some(apps)}"
    return f"members of group {group} read topics that this app does not read: {_some(topics)}"


def not_written(topic: str, partition: int, messages: int, for_s: float, text: str) -> str:
    """Returns the sentence about a partition to which nothing can be written."""
    place = f"topic {topic}" if partition < 0 else f"{topic}[{partition}]"
    waiting = "1 message waits" if messages == 1 else f"{messages} messages wait"
    return f"{place} acknowledges nothing for {duration(for_s)}, and {waiting}: {text}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:UNOWNED_MAX]) + (", …" if len(names) > UNOWNED_MAX else "")
