"""Keeps what formats make of schemas, as a function that reads one: no more of it than the client keeps schemas."""

from __future__ import annotations

import contextlib
from typing import Any

from awoke.payloads.registry.cache import ENTRIES_MAX


class Counts:
    """Counts of what is kept. Written without a lock: on a Python without the GIL, one may be lost."""

    __slots__ = ("evictions", "hits")

    def __init__(self) -> None:
        self.hits = 0
        """Uses of a schema that needed no look-up."""
        self.evictions = 0


class Kept(dict[Any, Any]):
    """A dict with at most `entries_max` entries; the oldest goes first. Any thread.

    A read is that of a dict, and costs no lock.
    """

    __slots__ = ("__weakref__", "counts", "entries_max")

    def __init__(self, counts: Counts, entries_max: int = ENTRIES_MAX) -> None:
        super().__init__()
        self.counts, self.entries_max = counts, entries_max

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        while len(self) > self.entries_max:
            with contextlib.suppress(RuntimeError, StopIteration):  # Another thread has just changed it.
                self.pop(next(iter(self)), None)
                self.counts.evictions += 1
