"""The resources of a process: threads, descriptors, memory."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple


class ResourceUsage(NamedTuple):
    """The resources of this process."""

    threads: int
    """Of Python, awoke and librdkafka together."""
    descriptors: int
    resident_kb: int
    names: Counter[str]
    """Of the threads."""


def resource_usage() -> ResourceUsage:
    """The resources of this process."""
    names = Counter[str]()
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # It has just ended.
            names[path.read_text().strip()] += 1
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return ResourceUsage(names.total(), len(os.listdir("/proc/self/fd")), int(resident.split()[1]), names)
