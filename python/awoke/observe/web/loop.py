"""A loop: it waits for descriptors and deadlines, and sees by the clock if the process itself did not run."""

from __future__ import annotations

import contextlib
import logging
import selectors
import time
from collections.abc import Callable
from typing import Any

from awoke.observe.web.deadlines import OVERSLEPT_S, Deadlines

logger = logging.getLogger(__name__)


class Client:
    """A connection whose client has the next move."""

    def __init__(self, close: Callable[[], object]) -> None:
        self.close = close
        """Closes the connection."""
        self.since_s = time.monotonic()


class Loop:
    """Waits for descriptors and deadlines, and runs the action of each. For one thread."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.deadlines = Deadlines()
        self.wakes = 0
        self.clients: dict[Any, Client] = {}
        """Connections whose client has the next move, the oldest first."""
        self._looked_s = time.monotonic()

    def watch(self, descriptor: Any, action: Callable[[], object]) -> None:
        """Runs the action whenever the descriptor is readable."""
        self.selector.register(descriptor, selectors.EVENT_READ, action)

    def forget(self, descriptor: Any) -> None:
        """Stops watching a descriptor; does nothing if it is not watched, or closed."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(descriptor)

    def close_oldest_client(self) -> bool:
        """Closes the connection that has waited longest for its client; returns false if there is none."""
        oldest = next(iter(self.clients.values()), None)
        if oldest is not None:
            oldest.close()
        return oldest is not None

    def close_clients(self) -> None:
        """Closes all connections that wait for their clients: their descriptors are needed."""
        while self.close_oldest_client():
            pass

    def turn(self) -> None:
        """Waits for events and runs their actions. Blocks until a descriptor is readable or a deadline is due."""
        wait_s = self.deadlines.next_in_s()
        events = self.selector.select(wait_s)
        self.wakes += 1
        # Without a deadline the wait has no limit.
        self._look_at_the_clock(float("inf") if wait_s is None else wait_s)
        for key, _ in events:
            if self._is_watched(key):
                key.data()
        self._look_at_the_clock(0.0)
        self.deadlines.run_due()

    def close(self) -> None:
        """Closes the selector."""
        self.selector.close()

    def _look_at_the_clock(self, expected_s: float) -> None:
        """Moves all deadlines if this process did not run for long: others are not late because of that."""
        late_s = time.monotonic() - self._looked_s - expected_s
        if late_s > OVERSLEPT_S:
            logger.warning("woke up %.1f s late: deadlines are moved", late_s)
            self.deadlines.postpone(late_s + OVERSLEPT_S)
        self._looked_s = time.monotonic()

    def _is_watched(self, key: selectors.SelectorKey) -> bool:
        """Returns false if the action of an earlier event in this turn has removed the descriptor."""
        return any(key is each for each in self.selector.get_map().values())
