"""Deadlines of one thread: each has a typed name, a moment and an action, and they lie in a heap."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from awoke.waiting.time import monotonic_s

OVERSLEPT_S = 5.0
"""A loop that wakes this much later than planned was not running: the machine was suspended, or the process stopped."""


class Deadline(NamedTuple):
    """The name of a deadline: of which kind it is, and of which node, mold, request or connection."""

    kind: Enum
    number: int = 0


class Deadlines:
    """Moments on the monotonic clock, each with a name and an action. For one thread; does not block."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Deadline]] = []
        self._entries: dict[Deadline, tuple[int, float, Callable[[], object]]] = {}
        self._numbers = itertools.count()

    def set(self, deadline: Deadline, in_s: float, action: Callable[[], object]) -> None:
        """Runs the action after `in_s` seconds; replaces an earlier entry of this name."""
        number, moment = next(self._numbers), monotonic_s() + in_s
        self._entries[deadline] = (number, moment, action)
        heapq.heappush(self._heap, (moment, number, deadline))

    def cancel(self, deadline: Deadline) -> None:
        """Removes a deadline; does nothing where there is none of this name."""
        self._entries.pop(deadline, None)

    def cancel_all(self, kinds: type[Enum], number: int = 0) -> None:
        """Removes every deadline of these kinds with this number."""
        for kind in kinds:
            self.cancel(Deadline(kind, number))

    def __contains__(self, deadline: Deadline) -> bool:
        return deadline in self._entries

    def next_in_s(self) -> float | None:
        """Returns the seconds until the earliest deadline, 0 where it is due; `None` where there is none."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - monotonic_s()) if self._heap else None

    def run_due(self) -> None:
        """Runs the actions that are due, the earliest first, each once."""
        now_s = monotonic_s()
        while self._heap and self._heap[0][0] <= now_s:
            entry = heapq.heappop(self._heap)
            if self._is_current(entry):
                action = self._entries.pop(entry[2])[2]
                action()

    def postpone(self, by_s: float) -> None:
        """Moves every deadline: nothing could happen in the time that has passed."""
        self._entries = {
            name: (number, moment + by_s, action) for name, (number, moment, action) in self._entries.items()
        }
        self._heap = [(moment, number, name) for name, (number, moment, _) in self._entries.items()]
        heapq.heapify(self._heap)

    def _is_current(self, entry: tuple[float, int, Deadline]) -> bool:
        found = self._entries.get(entry[2])
        return found is not None and found[0] == entry[1]
