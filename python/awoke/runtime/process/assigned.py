"""Assignments of partitions: how they are told apart, and those of one group of this process.

An operator pauses them and seeks in them. They are known from their hooks `assigned`, which the engine runs before the
first job of each assignment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from awoke._native import HookJob, Job, Partition

Place = tuple[str, int]
"""Topic and partition."""

Key = tuple[str, int, int]
"""Topic, partition and generation: one assignment."""

LAST_HOOKS = frozenset({"revoked", "lost", "shutdown"})
"""The hooks of which one is the last of an assignment."""


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


def key_of(work: Job | HookJob) -> Key:
    """Returns the assignment of a job or hook."""
    return (work.topic, work.partition, work.generation)


def owner_of(work: Job | HookJob) -> str:
    """Returns the name of a consumer, for threads and logs."""
    return f"{work.topic}[{work.partition}]"
