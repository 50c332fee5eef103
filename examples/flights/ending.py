"""Ends a program in order at SIGINT, SIGTERM and SIGHUP, and when its terminal closes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType


class Ending(BaseException):
    """The program has to end. No `Exception`: code that repeats what has failed must not take it."""


class Signals:
    """Raises `Ending` on the main thread at the first signal. Later ones do nothing: each step has a bound."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        for each in (self._reading, self._writing):
            os.set_blocking(each, False)
        self._is_ending = self._is_held = self._is_due = False

    def open(self) -> None:
        """Takes the signals; those that are ignored, as after `nohup`, stay so."""
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._is_due = self._is_held
            if not self._is_held:
                raise Ending

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raises `Ending` after the block: not between the start of a process and the line that keeps it, nor between
        the acquisition of a lock and the block that releases it. Only the main thread is told; blocks may be nested."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before
        if self._is_due and not before:
            self._is_due = False
            raise Ending

    def end(self) -> None:
        """Has no signal raise any more. On the main thread."""
        self._is_ending = True

    def wake(self) -> None:
        """Ends `wait`, now or later. From any thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, b".")

    def wait(self) -> None:
        """Blocks until a signal comes, `wake` is called, or the terminal closes.

        A terminal that runs `make` itself sends SIGHUP to `make` alone, which waits for its child.
        """
        waits = select.poll()
        waits.register(self._reading, select.POLLIN)
        if sys.stdin is not None and sys.stdin.isatty():
            waits.register(sys.stdin.fileno(), 0)  # Only its end.
        if not self._is_ending:
            waits.poll()
