"""The number of messages of a partition that are processed at once, and which of them keep their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

from awoke import checks
from awoke._native import Message
from awoke.errors import ConfigError

LaneOf = Callable[[Message[Any]], object]

COMMIT_GAP = 100_000


class Concurrency(msgspec.Struct, frozen=True):
    """Made by `by_partition`, `by_key`, `by` and `unordered`."""

    by: Literal["partition", "key", "nothing", "route"] = "partition"
    jobs: int = 1
    """The most jobs of one partition at once."""
    lane_of: LaneOf | None = None
    in_flight: int = 1_000
    """The most messages of a partition that are admitted and not completed."""
    commit_gap: int = COMMIT_GAP
    """The most messages from the first that is not completed to the last that was begun."""

    def __post_init__(self) -> None:
        for name in ("jobs", "in_flight", "commit_gap"):
            checks.whole("concurrency", name, getattr(self, name), 1, "concurrency")
        if self.in_flight < self.jobs or self.commit_gap < self.in_flight:
            bounds = f"jobs ({self.jobs}) <= in_flight ({self.in_flight}) <= commit_gap ({self.commit_gap})"
            raise ConfigError(f"concurrency: 1 <= {bounds}", "concurrency")


def by_partition() -> Concurrency:
    """Runs one job of a partition at a time, in order; the default."""
    return Concurrency()


def by_key(jobs: int = 16, *, in_flight: int | None = None, commit_gap: int = COMMIT_GAP) -> Concurrency:
    """Runs up to `jobs` jobs of a partition at once; messages with the same key one after another, in order.

    A message without a key has no order to keep. A key that is slow or fails delays only its own messages. A partition
    admits no more messages while `in_flight` of them are not completed (None: 1,000, or 4 for each job), or while the
    first that is not completed is `commit_gap` messages behind.

    Raises:
        ConfigError: fewer than one job, or bounds that contradict each other.
    """
    return Concurrency("key", jobs, None, _in_flight(jobs, in_flight), commit_gap)


def by(lane_of: LaneOf, jobs: int = 16, *, in_flight: int | None = None, commit_gap: int = COMMIT_GAP) -> Concurrency:
    """As `by_key`; messages for which `lane_of(message)` returns the same hashable value keep their order.

    `lane_of` is called once for each message, before its handler, in order. If it raises, the message goes by its key.

    Raises:
        ConfigError: as `by_key`; `lane_of` is no function.
    """
    if not callable(lane_of):
        raise ConfigError(f"concurrency: by() takes a function of a message, not {lane_of!r}", "concurrency")
    return Concurrency("route", jobs, lane_of, _in_flight(jobs, in_flight), commit_gap)


def unordered(jobs: int = 16, *, in_flight: int | None = None, commit_gap: int = COMMIT_GAP) -> Concurrency:
    """As `by_key`, but no message waits for another.

    Raises:
        ConfigError: as `by_key`.
    """
    return Concurrency("nothing", jobs, None, _in_flight(jobs, in_flight), commit_gap)


def _in_flight(jobs: int, in_flight: int | None) -> int:
    checks.whole("concurrency", "jobs", jobs, 1, "concurrency")
    return max(1_000, 4 * jobs) if in_flight is None else in_flight


class Lanes(NamedTuple):
    """The settings of lanes, as the engine takes them."""

    by: str
    jobs: int
    in_flight: int
    commit_gap: int
    shares: bool
    """True if a job may take messages of several lanes, because user code wants batches."""
    careful: int
    """The number of messages that are processed one by one after a crash."""
