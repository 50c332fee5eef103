"""An assigned partition and its progress: for metrics, health, reports and the last commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
