"""The time of awoke's clock, for processes that need no client.

A supervisor, and a command that talks to one, load no native module. Only that module lets a test take the clock.
"""

from __future__ import annotations

import sys
import time


def monotonic_s() -> float:
    """Returns the clock's time in seconds: `time.monotonic()`, unless a test moved it. Does not block."""
    native = sys.modules.get("awoke._native")
    return time.monotonic() if native is None else native.clock_ns() / 1e9


def wall_ms() -> int:
    """Returns the milliseconds since 1970."""
    return time.time_ns() // 1_000_000
