"""Ways for a test to wait for what it expects: an event with a deadline, never a sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

WITHIN_S = 30.0


class Collected(Generic[Item]):
    """Items from any thread, and a wait for as many as are expected."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._changed = threading.Condition()

    def add(self, item: Item) -> None:
        """Add one."""
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def wait_for(self, count: int, within_s: float = WITHIN_S) -> list[Item]:
        """Wait until there are so many; fails when the time is up."""
        return self.wait_until(lambda items: len(items) >= count, within_s)

    def wait_until(self, is_enough: Callable[[Sequence[Item]], bool], within_s: float = WITHIN_S) -> list[Item]:
        """Wait until these are enough; fails when the time is up."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_enough(self._items), within_s), f"only {self._items[-5:]} came"
            return list(self._items)

    @property
    def items(self) -> list[Item]:
        """What has come so far."""
        with self._changed:
            return list(self._items)


def wait_until(is_so: Callable[[], bool], what: str, within_s: float = WITHIN_S, every_s: float = 0.1) -> None:
    """Ask until it is so; fails when the time is up. For what another process holds: it sends no event."""
    assert became(is_so, within_s, every_s), f"after {within_s} s, still not so: {what}"


def became(is_so: Callable[[], bool], within_s: float = WITHIN_S, every_s: float = 0.1) -> bool:
    """Ask until it is so; whether it was before the time was up."""
    deadline_s, asked = time.monotonic() + within_s, threading.Event()
    while not is_so():
        if time.monotonic() >= deadline_s:
            return False
        asked.wait(every_s)
    return True
