"""Delays while a schema registry can't be asked."""

from __future__ import annotations

import threading
from collections.abc import Callable

from awoke.waiting.backoff import Backoff
from awoke.waiting.clock import monotonic_s

BACKOFF = Backoff(0.1, 30.0)

ROUNDING_S = 1e-6
"""The time by which a back-off may seem to last on at its end: its user waits for a whole number of nanoseconds."""


class RegistryAway:
    """The time until which users of the registry wait before they ask it again: one for all of them. Any thread."""

    def __init__(
        self,
        loads: Callable[[], int] = lambda: 0,
        backoff: Backoff = BACKOFF,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._loads, self._backoff, self._clock = loads, backoff, clock
        """`loads` returns how many schemas were loaded until now, by anyone: one more means that it is back."""
        self._lock = threading.Lock()
        self._tries = 0
        """The tries in a row that failed; those that failed while others waited count as one."""
        self._until_s = 0.0
        self._loads_seen = 0

    def delay_s(self) -> float:
        """Returns the time to wait after the registry could not be asked just now."""
        loads, now_s = self._loads(), self._clock()
        with self._lock:
            self._note(loads)
            if now_s >= self._until_s - ROUNDING_S:
                self._tries += 1
                self._until_s = now_s + self._backoff.delay_s(self._tries)
            return self._until_s - now_s

    def left_s(self) -> float:
        """Returns the rest of the time to wait; 0 where the registry may be asked."""
        loads, now_s = self._loads(), self._clock()
        with self._lock:
            self._note(loads)
            left_s = self._until_s - now_s
            return left_s if left_s > ROUNDING_S else 0.0

    def is_back(self) -> None:
        """Begins again with the shortest delay."""
        with self._lock:
            self._tries, self._until_s = 0, 0.0

    def _note(self, loads: int) -> None:
        if loads != self._loads_seen:
            self._loads_seen, self._tries, self._until_s = loads, 0, 0.0
