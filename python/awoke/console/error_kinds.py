"""Counts all error records by fingerprint, and keeps a bounded number of kinds and texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from awoke.console.views import ErrorRecord, ErrorView

KINDS_MAX = 1_000
"""The most fingerprints. A further one takes the place of the one that has not happened for the longest time."""
MINUTE_MS = 60_000
MINUTES = 60
"""The last minutes of which the failures are counted."""


class Kind:
    """The failures of one fingerprint."""

    __slots__ = ("count", "first_ms", "last", "minutes")

    def __init__(self, first: ErrorRecord) -> None:
        self.count, self.first_ms, self.last = 0, first.at_ms, first
        self.minutes = Counter[int]()

    def add(self, record: ErrorRecord) -> None:
        """Counts a record. Records of several processes may come in another order than their times."""
        self.count += 1
        self.first_ms = min(self.first_ms, record.at_ms)
        if record.at_ms >= self.last.at_ms:
            self.last = record
        self.minutes[record.at_ms // MINUTE_MS] += 1
        if len(self.minutes) > 2 * MINUTES:
            self.minutes = Counter(dict(sorted(self.minutes.items())[-MINUTES:]))


class ErrorKinds:
    """All failures by fingerprint. One thread."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self.count = 0
        """All records."""

    def add(self, record: ErrorRecord) -> None:
        """Counts a record."""
        kind = self._kinds.pop(record.fingerprint, None)
        if kind is None:
            kind = Kind(record)
            if len(self._kinds) >= KINDS_MAX:
                del self._kinds[next(iter(self._kinds))]
        self._kinds[record.fingerprint] = kind  # The last one is the last to have happened.
        kind.add(record)
        self.count += 1

    def clear(self) -> None:
        """Forgets all."""
        self._kinds.clear()
        self.count = 0

    def views(self) -> list[ErrorView]:
        """Returns the failures by fingerprint, the last one first."""
        found = [
            ErrorView(fingerprint=fingerprint, count=each.count, first_ms=each.first_ms, last=each.last)
            for fingerprint, each in self._kinds.items()
        ]
        return sorted(found, key=lambda each: -each.last.at_ms)

    def trends(self) -> dict[str, Mapping[int, int]]:
        """Returns the failures of each fingerprint by minute since 1970."""
        return {fingerprint: dict(each.minutes) for fingerprint, each in self._kinds.items()}
