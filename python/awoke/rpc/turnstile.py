"""How many calls run at once, in all and of each method, and which is next: whoever ends one takes the next with it.

Nobody waits here: a call that may not run yet stays in line, and the thread or task that ends another one carries it out.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol, TypeVar

from awoke.rpc.errors import ResourceExhausted


class Limited(Protocol):
    """What a method says about its calls."""

    @property
    def name(self) -> str: ...
    @property
    def concurrency(self) -> int | None: ...


class Entry(Protocol):
    """A call."""

    @property
    def method(self) -> Limited: ...
    @property
    def size_bytes(self) -> int: ...


Call = TypeVar("Call", bound=Entry)


class Turnstile:
    """Any thread may call everything here; nothing blocks."""

    def __init__(self, running_max: int, waiting_max: int, waiting_bytes_max: int) -> None:
        self._running_max, self._waiting_max, self._bytes_max = running_max, waiting_max, waiting_bytes_max
        self._running: dict[str, int] = {}
        self._lines: dict[str, deque[tuple[int, Entry]]] = {}
        """Of each method, with the number of each call."""
        self._in_all = self._number = self._waiting = self._bytes = 0
        self._lock = threading.Lock()

    def enter(self, call: Entry) -> bool:
        """Whether the call may run now; else it stands in line.

        Raises:
            ResourceExhausted: the line is as long as may be.
        """
        method = call.method
        with self._lock:
            if self._has_room(method) and not (self._waiting and self._lines.get(method.name)):
                self._begin(method)
                return True
            if self._waiting >= self._waiting_max or self._bytes + call.size_bytes > self._bytes_max:
                raise ResourceExhausted(f"{self._waiting} calls are waiting already")
            self._number += 1
            self._lines.setdefault(method.name, deque()).append((self._number, call))
            self._waiting += 1
            self._bytes += call.size_bytes
            return False

    def leave(self, call: Call) -> Call | None:
        """A call has ended; the one that is to run in its place, if there is one."""
        with self._lock:
            self._in_all -= 1
            self._running[call.method.name] -= 1
            if not self._waiting:
                return None
            heads = [line[0] for line in self._lines.values() if line and self._has_room(line[0][1].method)]
            if not heads:
                return None
            _, following = min(heads, key=lambda head: head[0])
            self._lines[following.method.name].popleft()
            self._waiting -= 1
            self._bytes -= following.size_bytes
            self._begin(following.method)
            return following  # type: ignore[return-value]

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return self._waiting

    @property
    def running(self) -> int:
        """How many run."""
        return self._in_all

    def _has_room(self, method: Limited) -> bool:
        limit = method.concurrency
        return self._in_all < self._running_max and (limit is None or self._running.get(method.name, 0) < limit)

    def _begin(self, method: Limited) -> None:
        self._in_all += 1
        self._running[method.name] = self._running.get(method.name, 0) + 1
