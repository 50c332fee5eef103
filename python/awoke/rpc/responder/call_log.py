"""The calls of a service as the console shows them: outcomes and times of each method, and the calls at work.

Kept only with `console=True`.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import NamedTuple

from awoke._native import IncomingCall

LAST = 200
"""The last calls of a method from which its times are computed."""
METHODS_MAX = 200
"""A service with more methods tells of the first that were called."""


class Times(NamedTuple):
    """Quantiles of a time, in seconds; None while no call has one."""

    half_s: float | None
    """The median."""
    most_s: float | None
    """The 95th percentile."""


class MethodTimes(NamedTuple):
    """The calls of one method."""

    method: str
    """Empty: the service has no method of the name that was called."""
    outcomes: dict[str, int]
    """The number of calls since the start by their end: `ok`, `cached`, or the code of an error."""
    queue: Times
    run: Times
    reply: Times


class MethodLog:
    """The calls of one method."""

    def __init__(self) -> None:
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.queue, self.run, self.reply = (collections.deque[float](maxlen=LAST) for _ in range(3))


class CallLog:
    """Notes calls. Any thread; nothing blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._methods: dict[str, MethodLog] = {}
        self._rejected: collections.Counter[str] = collections.Counter()
        self._at_work: dict[int, IncomingCall] = {}
        self.count: Callable[[], dict[str, int]] = dict
        """Returns how many calls run, wait and have expired."""

    def began(self, call: IncomingCall) -> None:
        """Notes a call whose method begins."""
        with self._lock:
            self._at_work[id(call)] = call

    def left(self, call: IncomingCall) -> None:
        """Notes that the method of a call has ended."""
        with self._lock:
            self._at_work.pop(id(call), None)

    def ended(self, method: str, outcome: str, queue_s: float, run_s: float) -> None:
        """Notes a call that was answered."""
        with self._lock:
            log = self._methods.get(method)
            if log is None:
                if len(self._methods) >= METHODS_MAX:
                    return
                log = self._methods[method] = MethodLog()
            log.outcomes[outcome] += 1
            log.queue.append(queue_s)
            log.run.append(run_s)

    def acknowledged(self, method: str, reply_s: float) -> None:
        """Notes a reply that the brokers have."""
        with self._lock:
            if (log := self._methods.get(method)) is not None:
                log.reply.append(reply_s)

    def rejected(self, reason: str) -> None:
        """Notes a call that was not executed."""
        with self._lock:
            self._rejected[reason] += 1

    def methods(self) -> list[MethodTimes]:
        """Returns the methods that were called, by name."""
        with self._lock:
            logs = [
                (name, dict(each.outcomes), [list(times) for times in (each.queue, each.run, each.reply)])
                for name, each in sorted(self._methods.items())
            ]
        return [MethodTimes(name, outcomes, *(times_of(each) for each in times)) for name, outcomes, times in logs]

    def at_work(self) -> list[IncomingCall]:
        """Returns the calls whose methods run, those that began first in front."""
        with self._lock:
            return list(self._at_work.values())

    def rejections(self) -> dict[str, int]:
        """Returns how many calls were not executed since the start, by reason."""
        with self._lock:
            return dict(self._rejected)


def times_of(seconds: list[float]) -> Times:
    """Returns the quantiles of some times."""
    if not seconds:
        return Times(None, None)
    found = sorted(seconds)
    return Times(found[len(found) // 2], found[min(len(found) - 1, len(found) * 95 // 100)])
