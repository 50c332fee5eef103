"""An assigned partition and its progress: for metrics, health, reports and the last commit."""

from __future__ import annotations

from typing import NamedTuple


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
