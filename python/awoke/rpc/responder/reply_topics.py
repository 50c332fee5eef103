"""Looks up the partitions of the topics of replies: a call whose reply can't be sent is not executed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from awoke.errors import AwokeError
from awoke.rpc import topics
from awoke.settings import Settings
from awoke.waiting.clock import monotonic_s

logger = logging.getLogger(__name__)

AGAIN_S = 10.0
"""Interval between two lookups, which an unknown partition causes."""

FRESH_S = 1.0
"""A call that was read before a lookup ended may be read again for this time."""


class ReplyTopics:
    """The topics of replies of one responder. Any thread."""

    def __init__(self, settings: Settings, names: Iterable[str]) -> None:
        self._settings, self._names = settings, sorted(names)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._began_s = self._ended_s = float("-inf")
        """When the last lookup began and ended, on awoke's clock."""

    def look_up(self) -> dict[str, int]:
        """Looks up how many partitions each has. Blocks up to `startup_timeout_s` for each.

        Raises:
            BrokerUnreachable.
        """
        self._began_s = monotonic_s()
        return topics.partitions_of(self._settings, self._names)

    def is_looking_again(self, tell: Callable[[Mapping[str, int]], None]) -> bool:
        """Looks them up again on another thread, unless that was done lately. `tell` gets the result. Does not block.

        Returns whether another partition may be known soon, or since the call was read.
        """
        with self._lock:
            now_s = monotonic_s()
            if self._thread is not None and (self._thread.is_alive() or now_s < self._ended_s + FRESH_S):
                return True
            if now_s < self._began_s + AGAIN_S:
                return False
            self._began_s = now_s
            self._thread = threading.Thread(target=self._run, args=(tell,), name="awoke-rpc-lookup", daemon=True)
            self._thread.start()
            return True

    def _run(self, tell: Callable[[Mapping[str, int]], None]) -> None:
        try:
            tell(self.look_up())
        except AwokeError as error:
            logger.warning("the partitions of %s could not be looked up: %s", ", ".join(self._names), error)
        finally:
            self._ended_s = monotonic_s()

    def close(self, deadline_s: float) -> None:
        """Waits for a lookup that is under way, at most until the deadline. Blocks."""
        thread = self._thread
        if thread is not None:
            thread.join(max(0.0, deadline_s - time.monotonic()))
