"""A queue of words for the main thread, from signal handlers and other threads, with a descriptor to wait on."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from types import FrameType
from typing import NamedTuple

Said = str
"""`signal`, `asked to stop`, `fatal error`, `stopped`; of a node `quick` (stop at once), `quiet` (no new jobs),
`ignored`."""

Handler = Callable[[int, FrameType | None], object]
_taken: list[Taken] = []
"""What this process has taken, and not given back."""


class Taken(NamedTuple):
    """The signals that a part of awoke handles in this process."""

    signals: Collection[int]
    wakeup: int
    """The descriptor that the interpreter writes signals to; -1 for none."""


def take_signals(handlers: Mapping[signal.Signals, Handler], wakeup: int = -1) -> Callable[[], None]:
    """Handles signals from now on, in this process only; returns a function that restores the earlier handlers.

    A process that user code forks (`os.fork`, `multiprocessing`) begins with Python's own handlers. With these it would
    ignore the TERM of its parent, and write signals of its own into the parent's inbox. For the main thread.
    """
    earlier_wakeup = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False) if wakeup >= 0 else -1
    earlier = {each: signal.signal(each, handler) for each, handler in handlers.items()}
    taken = Taken(frozenset(handlers), wakeup)
    _taken.append(taken)

    def restore() -> None:
        _taken.remove(taken)
        for each, handler in earlier.items():
            signal.signal(each, handler)
        if wakeup >= 0:
            signal.set_wakeup_fd(earlier_wakeup)

    return restore


def _give_back() -> None:
    """Runs in a forked child, whose only thread is its main thread, before any other code of it."""
    for taken in _taken:
        for each in taken.signals:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
        if taken.wakeup >= 0:
            signal.set_wakeup_fd(-1)
    _taken.clear()


os.register_at_fork(after_in_child=_give_back)


class Inbox:
    """A queue for one reader, the main thread, whose wait a signal ends whichever thread the kernel gave it to.

    Python runs signal handlers on the main thread only. A main thread that waits for a lock does not wake up when the
    kernel delivers a signal to another thread. The interpreter's C handler, which runs on that thread, writes to the
    wake-up descriptor, and the main thread waits for that.
    """

    def __init__(self) -> None:
        self._said: collections.deque[Said] = collections.deque()
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN)

    def put(self, said: Said) -> None:
        """Adds a word and wakes the reader. Any thread, or a signal handler; does not block."""
        self._said.append(said)
        # A full buffer wakes the reader as well. A closed one has no reader any more.
        with contextlib.suppress(OSError):
            self._writing.send(b"\0")

    def get(self) -> Said:
        """Waits for the next word. Main thread only; Python's signal handlers run meanwhile."""
        # The C handler makes the Python handler pending before it writes its byte, and the interpreter runs pending
        # handlers
        # between two calls. The handler's `put` writes a byte of its own, so the next poll can't miss its word.
        while not self._said:
            self._poll.poll()
            self._drain()
        return self._said.popleft()

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._reading.recv(4096):
                pass

    def hear(self, words: Mapping[signal.Signals, Said]) -> Callable[[], None]:
        """Puts the word of each signal into the queue from now on; returns a function that restores the earlier
        handlers.

        Does nothing on another thread than the main one, where Python allows no handlers.
        """
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        return take_signals(
            {each: lambda *_, said=said: self.put(said) for each, said in words.items()}, self._writing.fileno()
        )

    def close(self) -> None:
        """Closes the descriptors. Words that are added afterwards are lost."""
        self._reading.close()
        self._writing.close()
