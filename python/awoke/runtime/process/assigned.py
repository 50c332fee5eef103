"""The partitions that are assigned to one group of this process, to be paused and sought in by an operator.

They are known from their hooks `assigned`, which the engine runs before the first job of each assignment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from awoke._native import HookJob, Partition

Place = tuple[str, int]
"""Topic and partition."""


class AssignedPartitions:
    """The present assignments of one group. Nothing here blocks. Any thread."""

    def __init__(self, on_assigned: Callable[[str, int], object] = lambda topic, partition: None) -> None:
        self._on_assigned = on_assigned
        self._lock = threading.Lock()
        self._known: dict[Place, tuple[int, Partition]] = {}

    def add(self, hook: HookJob) -> None:
        """Notes an assignment, and tells of it before its first job."""
        assignment = hook.assignment()
        with self._lock:
            self._known[(hook.topic, hook.partition)] = (hook.generation, assignment)
        self._on_assigned(hook.topic, hook.partition)

    def remove(self, hook: HookJob) -> None:
        """Forgets an assignment that has ended, unless the partition was assigned again."""
        place = (hook.topic, hook.partition)
        with self._lock:
            generation, _ = self._known.get(place, (None, None))
            if generation == hook.generation:
                del self._known[place]

    def find(self, topic: str, partition: int) -> Partition | None:
        """Returns the present assignment of a partition; None where it is not assigned."""
        with self._lock:
            _, assignment = self._known.get((topic, partition), (0, None))
        return assignment if assignment is not None and assignment.is_current else None
