"""The messages that have failed and are to be tried again: what health names when one of them blocks its partition."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

PRUNED_AT = 1_000
"""With more messages than this, those that are done by now are forgotten."""
QUIET_S = 30.0
"""A message that a route marks by hand counts as failing for so long after its next attempt was due."""
KEY_MAX = 40
"""The most bytes of a key that are shown."""

IsDone = Callable[[str, int, int], bool | None]
"""Whether a message (topic, partition, offset) is done; None when its partition is not assigned."""


class Failure(NamedTuple):
    """A message that has failed."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    attempts: int
    error: str
    since_s: float
    """When it failed first, by the monotonic clock."""
    next_s: float
    """When it is tried again."""
    is_manual: bool
    """Whether its route marks messages by hand, so that one that is not marked may be done."""

    def __str__(self) -> str:
        now_s = time.monotonic()
        key = "no key" if self.key is None else f"key {self.key[:KEY_MAX]!r}"
        again = "is tried now" if self.next_s <= now_s else f"is tried again in {self.next_s - now_s:.0f} s"
        return (
            f"offset {self.offset} ({key}) failed {self.attempts} times in {now_s - self.since_s:.0f} s, "
            f"the last with {self.error}; it {again}"
        )


class Failing:
    """The messages that have failed and are to be tried again. Any thread may call everything here."""

    def __init__(self, is_done: IsDone) -> None:
        self._is_done = is_done
        self._lock = threading.Lock()
        self._failures: dict[tuple[str, int, int], Failure] = {}

    def note(
        self,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        attempts: int,
        error: BaseException,
        retry_in_s: float,
        *,
        is_manual: bool,
    ) -> None:
        """Notes a failure. Does not block."""
        now_s, place = time.monotonic(), (topic, partition, offset)
        with self._lock:
            earlier = self._failures.get(place)
            since_s = now_s if earlier is None else earlier.since_s
            text = f"{type(error).__name__}: {error}"
            self._failures[place] = Failure(
                *place, key, attempts, text, since_s, now_s + retry_in_s, is_manual=is_manual
            )
            is_full = len(self._failures) > PRUNED_AT
        if is_full:
            self.now()

    def now(self) -> list[Failure]:
        """Returns the messages that have failed and are not done, the oldest failure first. Does not block."""
        with self._lock:
            failures = list(self._failures.values())
        over = {each[:3] for each in failures if self._is_over(each)}
        with self._lock:
            for each in failures:
                if each[:3] in over and self._failures.get(each[:3]) is each:
                    del self._failures[each[:3]]
        return sorted((each for each in failures if each[:3] not in over), key=lambda each: each.since_s)

    def blocked(self, after_s: float) -> dict[tuple[str, int], list[Failure]]:
        """Returns those that have failed for this long, by topic and partition, the oldest failure first."""
        now_s = time.monotonic()
        found: dict[tuple[str, int], list[Failure]] = {}
        for each in self.now():
            if now_s - each.since_s >= after_s:
                found.setdefault((each.topic, each.partition), []).append(each)
        return found

    def _is_over(self, failure: Failure) -> bool:
        is_done = self._is_done(failure.topic, failure.partition, failure.offset)
        is_quiet = failure.is_manual and time.monotonic() > failure.next_s + QUIET_S
        return is_done is None or is_done or is_quiet
