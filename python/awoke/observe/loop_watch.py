"""Finds calls that block an event loop of async functions, by the loop's own lateness: event, and stack in the log.

The loop's selector tells since when the loop has not looked for events. The thread of the watch:
1. wait until the loop runs something;
2. look again when that has lasted as long as it may, and report it if it lasts still;
3. wait for the end of what was reported;
4. end when the loop has ended.

So it is woken at most twice in that time while the loop is busy, and never while the loop is idle.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import sys
import threading
import time
import traceback
from typing import Any

from awoke.observe.events import Events, LoopBlocked
from awoke.text.frames import is_of_user, stack_text

logger = logging.getLogger(__name__)

BLOCKED_S = 0.5
"""The longest time for which a call may keep a loop."""
LATE_S = 0.25
"""A watch that is itself later than this says nothing: the process did not get the processor."""
PLACES_MAX = 1_000
"""The most places whose stacks the log has had."""


class WatchedSelector(selectors.DefaultSelector):
    """A selector of an event loop that tells since when the loop is busy. Its attributes are for any thread."""

    busy_since_s: float | None = None
    """When the loop has last got events; None while it waits for some."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: threading.Event | None = None
        """What is set when the loop next gets events; None if no thread waits for that."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for events."""
        self.busy_since_s = None
        try:
            found: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        finally:
            self.busy_since_s = time.monotonic()
            if self.wanted is not None:
                wanted, self.wanted = self.wanted, None
                wanted.set()
        return found


class LoopWatch:
    """Watches one event loop, which `new_loop` makes. `start` is called on the loop's thread, `stop` on any."""

    def __init__(self, loop: str, events: Events) -> None:
        self._name, self._events = loop, events
        self._selector: WatchedSelector | None = None
        self._changed = threading.Event()
        self._is_closed = False
        self._told: set[str] = set()
        self._watched = threading.current_thread()
        self._thread = threading.Thread(target=self._watch, name=f"{loop}-watch", daemon=True)

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """Returns a new event loop; one of another kind than asyncio's own, as uvloop's, is not watched."""
        loop = asyncio.new_event_loop()
        if type(loop) is not asyncio.SelectorEventLoop:
            return loop
        loop.close()
        self._selector = WatchedSelector()
        return asyncio.SelectorEventLoop(self._selector)

    def start(self) -> None:
        """Watches the loop of the calling thread from now on."""
        self._watched = threading.current_thread()
        if self._selector is not None:
            self._thread.start()

    def stop(self) -> None:
        """Ends the watch, and joins its thread."""
        self._is_closed = True
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        selector, reported_s = self._selector, None
        assert selector is not None
        while True:
            self._changed.clear()
            if self._is_closed:  # After `clear`, which may have taken what `stop` has set.
                return
            selector.wanted = self._changed
            since_s = selector.busy_since_s
            if since_s is None or since_s == reported_s:
                self._changed.wait()
                continue
            due_s = since_s + BLOCKED_S
            selector.wanted = None
            if (left_s := due_s - time.monotonic()) > 0:
                self._changed.wait(left_s)
                if selector.busy_since_s != since_s:
                    continue
            if not self._is_closed and time.monotonic() - due_s < LATE_S:
                self._report(time.monotonic() - since_s)
            reported_s = since_s

    def _report(self, for_s: float) -> None:
        frame: Any = sys._current_frames().get(self._watched.ident or 0)
        if frame is None:
            return
        users = [each for each in traceback.extract_stack(frame) if is_of_user(each.filename)]
        if not users:
            return
        place = f"{users[-1].filename}:{users[-1].lineno} in {users[-1].name}"
        is_new = place not in self._told
        self._events.emit(
            LoopBlocked(loop=self._name, place=place, function=users[-1].name, for_s=round(for_s, 3), is_new=is_new)
        )
        if is_new and len(self._told) < PLACES_MAX:
            self._told.add(place)
            text = "%s blocks the event loop, and with it all async functions; await something that does not block, use"
            logger.warning(
                f"{text} asyncio.to_thread, or make the function def. It is at:\n%s", place, stack_text(frame)
            )
