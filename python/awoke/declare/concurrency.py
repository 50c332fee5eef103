"""The number of messages of a partition that are processed at once, and which of them keep their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

from awoke._native import Message
from awoke.errors import ConfigError
from awoke.preconditions import checks

LaneOf = Callable[[Message[Any, Any]], object]

COMMIT_GAP = 100_000

IN_TRANSACTIONS = 10_000
"""The messages in flight of an exactly-once route, where nothing else is said."""


class Concurrency(msgspec.Struct, frozen=True):
    """Made by `by_partition`, `by_key`, `by` and `unordered`."""

    by: Literal["partition", "key", "nothing", "route"] = "partition"
    jobs: int = 1
    """The most jobs of one partition at once."""
    lane_of: LaneOf | None = None
    in_flight: int | None = None
    """The most messages of a partition that are admitted and not completed; None for a number that suits the route."""
    commit_gap: int = COMMIT_GAP
    """The most messages from the first that is not completed to the last that was begun."""

    def __post_init__(self) -> None:
        for name in ("jobs", "in_flight", "commit_gap"):
            if name != "in_flight" or self.in_flight is not None:
                checks.whole("concurrency", name, getattr(self, name), 1, "concurrency")
        in_flight = self.in_flight or max(1_000, 4 * self.jobs)
        if in_flight < self.jobs or self.commit_gap < in_flight:
            bounds = f"jobs ({self.jobs}) <= in_flight ({in_flight}) <= commit_gap ({self.commit_gap})"
            raise ConfigError(f"concurrency: 1 <= {bounds}", "concurrency")

    def in_flight_max(self, *, is_exactly_once: bool) -> int:
        """Returns the most messages of a partition that are admitted and not completed."""
        if self.in_flight is not None:
            return self.in_flight
        # A message is in flight until its transaction is committed: fewer messages would make small transactions.
        return min(self.commit_gap, max(IN_TRANSACTIONS if is_exactly_once else 1_000, 4 * self.jobs))


def by_partition() -> Concurrency:
    """Runs one job of a partition at a time, in order; the default."""
    return Concurrency()


def by_key(jobs: int = 16, *, in_flight: int | None = None, commit_gap: int = COMMIT_GAP) -> Concurrency:
    """Runs up to `jobs` jobs of a partition at once; messages with the same key one after another, in order.

    A message without a key has no order to keep. A key that is slow or fails delays only its own messages. A partition
    admits no more messages while `in_flight` of them are not completed (None: 1,000, or 4 for each job; 10,000
    where the route is exactly-once), or while the first that is not completed is `commit_gap` messages behind.

    Raises:
        ConfigError: fewer than one job, or bounds that contradict each other.
    """
    return Concurrency("key", jobs, None, in_flight, commit_gap)


def by(lane_of: LaneOf, jobs: int = 16, *, in_flight: int | None = None, commit_gap: int = COMMIT_GAP) -> Concurrency:
    """As `by_key`; messages for which `lane_of(message)` returns the same hashable value keep their order.

    `lane_of` is called once for each message, before its handler, in order. If it raises, the message goes by its key.

    Raises:
        ConfigError: as `by_key`; `lane_of` is no function.
    """
    if not callable(lane_of):
        raise ConfigError(f"concurrency: by() takes a function of a message, not {lane_of!r}", "concurrency")
    return Concurrency("route", jobs, lane_of, in_flight, commit_gap)


def unordered(jobs: int = 16, *, in_flight: int | None = None, commit_gap: int = COMMIT_GAP) -> Concurrency:
    """As `by_key`, but no message waits for another.

    Raises:
        ConfigError: as `by_key`.
    """
    return Concurrency("nothing", jobs, None, in_flight, commit_gap)


class Lanes(NamedTuple):
    """The settings of lanes, as the engine takes them."""

    by: str
    jobs: int
    in_flight: int
    commit_gap: int
    share: str
    """The lanes that one job takes: "one"; "short", several while jobs are short; "even", a batch's share of those
    that wait."""
    careful: int
    """The number of messages that are processed one by one after a crash."""
