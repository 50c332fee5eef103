"""Ways for a test to wait: for what it expects, with a deadline; for a time only where the time is the subject.

No other file of the tests and benches waits for a time: tests/unit/test_structure.py forbids it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, NoReturn, TypeVar

Item = TypeVar("Item")

WITHIN_S = 30.0


class Collected(Generic[Item]):
    """Items from any thread, and a wait for an expected number of them."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._changed = threading.Condition()

    def add(self, item: Item) -> None:
        """Adds an item. Any thread may call it."""
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def wait_for(self, count: int, within_s: float = WITHIN_S) -> list[Item]:
        """Waits until there are `count` items, and returns all. Blocks; fails when the time is up."""
        return self.wait_until(lambda items: len(items) >= count, within_s)

    def wait_until(self, is_enough: Callable[[Sequence[Item]], bool], within_s: float = WITHIN_S) -> list[Item]:
        """Waits until the items are enough, and returns all. Blocks; fails when the time is up."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_enough(self._items), within_s), f"only {self._items[-5:]} came"
            return list(self._items)

    @property
    def items(self) -> list[Item]:
        """The items that have come until now, in their order."""
        with self._changed:
            return list(self._items)


def wait_until(is_so: Callable[[], bool], what: str, within_s: float = WITHIN_S, every_s: float = 0.1) -> None:
    """Asks until a state is reached. Blocks; fails when the time is up.

    For the state of another process or of a broker, which sends the test no event. A test of awoke's own objects waits
    on `Collected` or an event.
    """
    assert became(is_so, within_s, every_s), f"after {within_s} s, still not so: {what}"


def became(is_so: Callable[[], bool], within_s: float = WITHIN_S, every_s: float = 0.1) -> bool:
    """Asks until a state is reached, and returns whether it was in time. Blocks."""
    deadline_s = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(every_s)
    return True


def stays_so(is_so: Callable[[], bool], what: str, for_s: float, every_s: float = 0.02) -> None:
    """Asks for `for_s` seconds whether a state lasts. Blocks; fails as soon as it has ended.

    For the claim that something does *not* happen: no event can tell. A failure is certain, a success only likely.
    """
    assert not became(lambda: not is_so(), for_s, every_s), f"no longer so within {for_s} s: {what}"


def elapse(duration_s: float, why: str) -> None:
    """Lets real time pass, for a time-out without a test clock, as a broker's. Blocks; `why` is for readers."""
    assert why
    time.sleep(duration_s)


def work_for(duration_s: float) -> None:
    """Takes the time that the work of a handler, or the pace of a sender, takes in real use. Blocks."""
    time.sleep(duration_s)


async def awork_for(duration_s: float) -> None:
    """Takes time as `work_for`, on the running loop."""
    await asyncio.sleep(duration_s)


def hang() -> NoReturn:
    """Blocks for ever, as a handler with a fault does."""
    while True:
        threading.Event().wait()


async def ahang() -> None:
    """Waits on the running loop until the task is cancelled."""
    await asyncio.Event().wait()
