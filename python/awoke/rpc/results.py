"""Results of calls with an idempotency key, for callers that ask again: carried out once, answered each time.

In memory, of one process: whoever takes over a partition does not know them. Bounded in number, bytes and age.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

Waiter = TypeVar("Waiter")


class Result(NamedTuple):
    """What a call was answered with."""

    kind: str
    body: bytes
    code: str | None = None


class Results(Generic[Waiter]):
    """Any thread may call everything here; nothing blocks."""

    def __init__(
        self, count_max: int, bytes_max: int, ttl_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count_max, self._bytes_max, self._ttl_s, self._clock = count_max, bytes_max, ttl_s, clock
        self._running: dict[bytes, list[Waiter]] = {}
        """Who else waits for what is being carried out."""
        self._done: OrderedDict[bytes, tuple[float, Result]] = OrderedDict()
        """Results and when they came, oldest first."""
        self._bytes = 0
        self._lock = threading.Lock()

    def begin(self, key: bytes, waiter: Waiter) -> Result | bool:
        """What is to be done about a call: its result, which is known.

        True where nobody has carried it out: do so, and `finish`. False where somebody is about to: who finishes it answers
        the waiter, too.
        """
        with self._lock:
            self._shrink()
            found = self._done.get(key)
            if found is not None:
                return found[1]
            waiting = self._running.get(key)
            if waiting is None:
                self._running[key] = []
                return True
            waiting.append(waiter)
            return False

    def finish(self, key: bytes, result: Result | None) -> list[Waiter]:
        """It was carried out (None: in vain, so that it may be tried again); who waits for the same."""
        with self._lock:
            if result is not None and key in self._running:
                self._done[key] = (self._clock(), result)
                self._bytes += len(result.body)
                self._shrink()
            return self._running.pop(key, [])

    def __len__(self) -> int:
        return len(self._done)

    def _shrink(self) -> None:
        old_s = self._clock() - self._ttl_s
        while self._done:
            key, (came_s, result) = next(iter(self._done.items()))
            if came_s > old_s and len(self._done) <= self._count_max and self._bytes <= self._bytes_max:
                return
            self._bytes -= len(result.body)
            del self._done[key]
