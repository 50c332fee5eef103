"""What is to happen when nothing else does: named moments in a heap."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

OVERSLEPT_S = 5.0
"""Whoever wakes up so much later than it wanted was not running: the machine was suspended, or the process stopped."""


class Deadlines:
    """Moments on the monotonic clock, each with a name and what to do then. One thread."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._entries: dict[str, tuple[int, float, Callable[[], object]]] = {}
        self._numbers = itertools.count()

    def set(self, name: str, in_s: float, action: Callable[[], object]) -> None:
        """Do this after so long; replaces what had the name."""
        number, moment = next(self._numbers), time.monotonic() + in_s
        self._entries[name] = (number, moment, action)
        heapq.heappush(self._heap, (moment, number, name))

    def cancel(self, name: str) -> None:
        """Do not do it after all."""
        self._entries.pop(name, None)

    def cancel_all(self, prefix: str) -> None:
        """Do nothing of what has a name that begins so."""
        for name in [each for each in self._entries if each.startswith(prefix)]:
            del self._entries[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def next_in_s(self) -> float | None:
        """Until the earliest; None when there is none."""
        while self._heap and not self._is_current(self._heap[0]):
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else None

    def run_due(self) -> None:
        """Do what is due."""
        now_s = time.monotonic()
        while self._heap and self._heap[0][0] <= now_s:
            entry = heapq.heappop(self._heap)
            if self._is_current(entry):
                action = self._entries.pop(entry[2])[2]
                action()

    def postpone(self, by_s: float) -> None:
        """Move everything: the time that passed was nobody's."""
        self._entries = {
            name: (number, moment + by_s, action) for name, (number, moment, action) in self._entries.items()
        }
        self._heap = [(moment, number, name) for name, (number, moment, _) in self._entries.items()]
        heapq.heapify(self._heap)

    def _is_current(self, entry: tuple[float, int, str]) -> bool:
        found = self._entries.get(entry[2])
        return found is not None and found[0] == entry[1]
