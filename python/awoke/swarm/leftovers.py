"""Ends what the code of an app has started and left behind, when its node or its mold has ended."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Sequence
from enum import Enum, auto

from awoke.observe.web.deadlines import Deadline, Deadlines
from awoke.swarm import linux

logger = logging.getLogger(__name__)

WITHIN_S = 3.0
"""The time in which such processes end by themselves once they are told."""


class LeftoverTimer(Enum):
    """The deadlines of groups of processes."""

    END = auto()
    """Its processes must have ended."""


class Leftovers:
    """Ends the rest of the group of processes that a node or a mold has led. For the supervisor's thread.

    Processes whose parent has ended are children of the supervisor. Those that have made a group of their own, as a
    service that a handler starts, are left until the swarm ends.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines

    def end(self, leader: str, group: int) -> None:
        """Ends the processes of a group, whose leader has ended. Does not block."""
        left = linux.children(group)
        if not left:
            return
        logger.info("%s has left processes behind, which are ended: %s", leader, _shown(left))
        self._signal(leader, group, left, signal.SIGTERM)

    def _signal(self, leader: str, group: int, left: Sequence[int], number: int) -> None:
        for pid in left:
            for each in (number, signal.SIGCONT):
                with contextlib.suppress(OSError):  # Of another user. Its number is not in use again: it is a child.
                    os.kill(pid, each)
        self._deadlines.set(Deadline(LeftoverTimer.END, group), WITHIN_S, lambda: self._kill(leader, group))

    def _kill(self, leader: str, group: int) -> None:
        """Kills those that are still there, and again those whose parent was one of them."""
        if left := linux.children(group):
            logger.warning("processes of %s do not end, and are killed: %s", leader, _shown(left))
            self._signal(leader, group, left, signal.SIGKILL)


def _shown(processes: Sequence[int]) -> str:
    return ", ".join(f"{pid} ({linux.name_of(pid)})" for pid in processes)
