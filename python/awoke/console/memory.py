"""Reads how much of a process's memory is its own, and how much it shares.

The kernel walks all pages of the process for that: some milliseconds for 100 MB. It is read once a minute, without the
GIL, on the thread of the reporter.
"""

from __future__ import annotations

from pathlib import Path

from awoke.console.views import Memory

ROLLUP = Path("/proc/self/smaps_rollup")
SAMPLES = 12
"""It is read with each twelfth sample: once a minute."""


class MemoryReader:
    """Reads the memory of this process from time to time. One thread."""

    def __init__(self, rollup: Path = ROLLUP) -> None:
        self._rollup, self._samples, self._is_read = rollup, 0, False
        self._last: Memory | None = None

    def sample(self) -> None:
        """Notes that another five seconds have gone."""
        self._samples += 1

    def memory(self) -> Memory | None:
        """Returns the memory, as it was within the last minute; None where the system does not tell it."""
        if self._samples >= SAMPLES or not self._is_read:
            self._samples, self._is_read, self._last = 0, True, read_memory(self._rollup)
        return self._last


def read_memory(rollup: Path = ROLLUP) -> Memory | None:
    """Returns the memory of this process; None where the system does not tell it. The kernel takes milliseconds."""
    try:
        lines = [line.split() for line in rollup.read_text().splitlines()]
        found = {words[0]: int(words[1]) << 10 for words in lines if len(words) == 3 and words[2] == "kB"}
        return Memory(
            own_bytes=found["Private_Clean:"] + found["Private_Dirty:"],
            shared_bytes=found["Shared_Clean:"] + found["Shared_Dirty:"],
            proportional_bytes=found["Pss:"],
        )
    except (OSError, KeyError, ValueError):
        return None
