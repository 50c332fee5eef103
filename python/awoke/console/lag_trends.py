"""The trend of each lag: it grows or falls, by what the brokers have answered within the last minute.

The brokers' answers are right for paused partitions, and for groups without members, where no process sees a lag.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from awoke.console.views import GroupView

Place = tuple[str, str, int]
"""Group, topic and partition."""
APART_S = 5.0
"""The least time between two answers that are kept."""
LEAST_S = 4.0
"""A shorter time tells no trend: a commit comes each second or so."""
WINDOW_S = 60.0
STEADY_PER_S = 0.05
"""A smaller change is none: less than three messages in a minute."""


class LagTrends:
    """Keeps the lags of the last minute. One thread."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Mapping[Place, int]]] = deque()

    def note(self, now_s: float, groups: Iterable[GroupView]) -> dict[Place, float]:
        """Takes the lags of now; returns the change of each in a second, of those that are known long enough."""
        lags = {
            (group.group, each.topic, each.partition): each.lag
            for group in groups
            for each in group.partitions
            if each.lag is not None
        }
        while self._kept and now_s - self._kept[0][0] > WINDOW_S:
            self._kept.popleft()
        found = dict[Place, float]()
        if self._kept and now_s - self._kept[0][0] >= LEAST_S:
            # A partition that is not in the oldest answer is younger than that.
            since_s, before = self._kept[0]
            found = {place: (lag - before[place]) / (now_s - since_s) for place, lag in lags.items() if place in before}
        if not self._kept or now_s - self._kept[-1][0] >= APART_S:
            self._kept.append((now_s, lags))
        return found


def left_s(lag: int | None, per_s: float | None) -> float | None:
    """Returns the time in which a lag that falls is gone; None where it does not fall."""
    if lag is None or per_s is None or per_s > -STEADY_PER_S:
        return None
    return lag / -per_s
