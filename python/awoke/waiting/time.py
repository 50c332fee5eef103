"""The time of awoke's clock, for processes that need no client.

A supervisor, and a command that talks to one, load no native module. Only that module lets a test take the clock.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import NamedTuple


class Patience(NamedTuple):
    """The longest wait of one thread for what may never come."""

    thread: int
    """Its identifier."""
    seconds: float


patience: Patience | None = None
"""That of the thread that runs a test, while pytest runs one: a wait without an end would hang the whole run."""


def patience_s() -> float | None:
    """Returns the longest time for which the calling thread waits for what may never come; None for no limit."""
    is_mine = patience is not None and patience.thread == threading.get_ident()
    return patience.seconds if patience is not None and is_mine else None


def monotonic_s() -> float:
    """Returns the clock's time in seconds: `time.monotonic()`, unless a test moved it. Does not block."""
    native = sys.modules.get("awoke._native")
    return time.monotonic() if native is None else native.clock_ns() / 1e9


def wall_ms() -> int:
    """Returns the milliseconds since 1970."""
    return time.time_ns() // 1_000_000
