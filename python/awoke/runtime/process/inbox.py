"""A queue of words for the main thread, from signal handlers and other threads, with a descriptor to wait on."""

from __future__ import annotations

import collections
import contextlib
import select
import signal
import socket
import threading
from collections.abc import Callable, Mapping

Said = str
"""`signal`, `asked to stop`, `fatal error`, `stopped`; of a node `quick` (stop at once), `quiet` (no new jobs),
`ignored`."""


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
        earlier_descriptor = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        earlier = {each: signal.signal(each, lambda *_, said=said: self.put(said)) for each, said in words.items()}

        def restore() -> None:
            for each, handler in earlier.items():
                signal.signal(each, handler)
            signal.set_wakeup_fd(earlier_descriptor)

        return restore

    def close(self) -> None:
        """Closes the descriptors. Words that are added afterwards are lost."""
        self._reading.close()
        self._writing.close()
