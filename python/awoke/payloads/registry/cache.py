"""The schemas that a client knows, the ids that its registry does not have, and what formats make of schemas."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from awoke.payloads.registry.errors import SchemaNotFound
from awoke.payloads.registry.schema import RegisteredSchema, Schema
from awoke.waiting.clock import monotonic_s

UNKNOWN_FOR_S = 10.0
"""A registry that did not have an id is asked for it again after this time."""
ENTRIES_MAX = 1_000

SchemaKey = int | str | tuple[str, int]
"""An id, a GUID, or an id in a context of the registry."""
Key = SchemaKey | tuple[str, Schema]
"""A `SchemaKey`, or a subject with a schema."""


class SchemaCache:
    """Keeps schemas by id, by GUID, and by subject with schema. Any thread; blocks for no longer than a lock is held.

    Each of the three tables is bounded; the entry that was not used for the longest time goes first. Reads take the
    lock, too: they move their entry, and are counted.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX, clock: Callable[[], float] = monotonic_s) -> None:
        self.entries_max = entries_max
        """The most entries of each table."""
        self._clock = clock
        self._lock = threading.Lock()
        self._tables: dict[type, OrderedDict[Key, RegisteredSchema]] = {
            kind: OrderedDict() for kind in (int, str, tuple)
        }
        """By the type of the key; under the lock."""
        self._unknown: OrderedDict[Key, tuple[float, SchemaNotFound]] = OrderedDict()
        """The registry does not have these until a time of the clock; under the lock."""
        self.hits = 0
        """Look-ups that found a schema; written under the lock."""
        self.misses = 0
        """Schemas that were not in the cache, so that the registry was asked; written under the lock."""
        self.evictions = 0
        """Schemas that had to go for others; written under the lock."""

    def get(self, key: Key) -> RegisteredSchema | None:
        """Returns a schema, and counts a hit if there is one."""
        with self._lock:
            table = self._tables[type(key)]
            found = table.get(key)
            if found is not None:
                table.move_to_end(key)
                self.hits += 1
            return found

    def get_or_miss(self, key: Key) -> RegisteredSchema | None:
        """Returns a schema without counting it, or counts a miss: the caller asks the registry."""
        with self._lock:
            found = self._tables[type(key)].get(key)
            self.misses += found is None
            return found

    def put(self, key: Key, registered: RegisteredSchema) -> None:
        """Keeps a schema; if there are too many, the one that was not used for the longest time goes."""
        with self._lock:
            self._unknown.pop(key, None)
            table = self._tables[type(key)]
            table[key] = registered
            table.move_to_end(key)
            if len(table) > self.entries_max:
                table.popitem(last=False)
                self.evictions += 1

    def put_unknown(self, key: SchemaKey, error: SchemaNotFound) -> None:
        """Keeps the registry's answer for 10 s; of too many, the oldest goes."""
        with self._lock:
            self._unknown.pop(key, None)
            self._unknown[key] = (self._clock() + UNKNOWN_FOR_S, error)
            if len(self._unknown) > self.entries_max:
                self._unknown.popitem(last=False)

    def why_unknown(self, key: SchemaKey) -> SchemaNotFound | None:
        """Returns a copy of the registry's answer, to be raised; None when the registry is to be asked."""
        with self._lock:
            until_s, error = self._unknown.get(key, (0.0, None))
            if error is None or self._clock() >= until_s:
                return None
            return copy.copy(error)  # An error that is raised many times would keep a traceback for each.

    def forget_subject(self, subject: str) -> None:
        """Drops what is known of a subject, one of whose versions was deleted. Ids stay: they are never reused."""
        with self._lock:
            table = self._tables[tuple]
            for key in [each for each in table if isinstance(each, tuple) and each[0] == subject]:
                del table[key]

    def renew_lock(self) -> None:
        """Makes a new lock in a forked process: a thread of the parent may have held the old one."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Returns the number of entries in all tables."""
        return sum(map(len, self._tables.values()))


class Counts:
    """Counts of what is kept. Written without a lock: on a Python without the GIL, one may be lost."""

    __slots__ = ("evictions", "hits")

    def __init__(self) -> None:
        self.hits = 0
        """Uses of a schema that needed no look-up."""
        self.evictions = 0


class BoundedDict(dict[Any, Any]):
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
