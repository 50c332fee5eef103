"""The last hour of a process: sixty samples of five seconds, and sixty of a minute."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from awoke.console.views import History, Sample

SAMPLE_S = 5.0
SAMPLES = 60
MINUTE = round(60 / SAMPLE_S)
"""The samples that make a minute."""

Place = tuple[str, str, int]
"""Group, topic and partition."""


class HistoryRing:
    """Takes samples and keeps the last ones. One thread."""

    def __init__(self) -> None:
        self._recent: collections.deque[Sample] = collections.deque(maxlen=SAMPLES)
        self._minutes: collections.deque[Sample] = collections.deque(maxlen=SAMPLES)
        self._count = 0

    def add(self, sample: Sample) -> None:
        """Adds a sample of five seconds, and one of a minute after each twelfth."""
        self._recent.append(sample)
        self._count += 1
        if self._count % MINUTE == 0:
            self._minutes.append(summed(list(self._recent)[-MINUTE:]))

    def view(self) -> History:
        """Returns the samples, the oldest first."""
        return History(of_5_s=list(self._recent), of_minutes=list(self._minutes))


def summed(samples: Sequence[Sample]) -> Sample:
    """Returns one sample for several that follow each other."""
    last = samples[-1]
    offsets, failures = sum(each.offsets for each in samples), sum(each.failures for each in samples)
    return Sample(last.at_ms, offsets, failures, last.lag, last.memory_bytes)


def advanced(before: Mapping[Place, int], now: Mapping[Place, int]) -> dict[Place, int]:
    """Returns by how much each position has advanced; none for a partition that was sought back, or is new."""
    return {place: at - before[place] for place, at in now.items() if place in before and at >= before[place]}
