"""A queue of words, from signals and other threads, for the thread that decides what the process does next."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from types import FrameType
from typing import NamedTuple

Said = str
"""`signal`, `asked to stop`, `fatal error`, `stopped`; of a node `quick` (stop at once), `quiet` (no new jobs),
`ignored`."""

STOPS = ("signal", "quick")
"""The words that ask for the end of the process."""

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


class StartInterrupted(KeyboardInterrupt):
    """A signal has come while the app starts. The main thread raises it, wherever it is."""


class Inbox:
    """A queue for one reader at a time, whose wait a signal ends whichever thread the kernel gave it to.

    Python runs signal handlers on the main thread only, and there between two instructions. A main thread that waits
    for a lock does not wake up when the kernel delivers a signal to another thread, and one that is in a library of C
    runs no handler. The interpreter's C handler, which runs on any thread, writes the number of the signal to the
    wake-up descriptor, and the reader takes it from there.
    """

    def __init__(self) -> None:
        self._said: collections.deque[Said] = collections.deque()
        self._words: Mapping[int, Said] = {}
        """The word of each signal that is heard, by the signal's number."""
        self._interrupts = False
        """True if the next signal interrupts the main thread."""
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN)

    def put(self, said: Said) -> None:
        """Adds a word and wakes the reader. Any thread; does not block."""
        self._said.append(said)
        self._write(0)

    def _write(self, number: int) -> None:
        # A full buffer wakes the reader as well. A closed one has no reader any more.
        with contextlib.suppress(OSError):
            self._writing.send(bytes((number,)))

    def get(self) -> Said:
        """Waits for the next word. One thread at a time; on the main thread, Python's signal handlers run meanwhile."""
        while not self._said:
            self._poll.poll()
            self._drain()
        return self._said.popleft()

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while numbers := self._reading.recv(4096):
                self._said.extend(self._words[each] for each in numbers if each in self._words)

    @property
    def is_hearing(self) -> bool:
        """True if signals put words into the queue."""
        return bool(self._words)

    def hear(self, words: Mapping[signal.Signals, Said]) -> Callable[[], None]:
        """Puts the word of each signal into the queue from now on; returns a function that restores the earlier
        handlers.

        Does nothing on another thread than the main one, where Python allows no handlers.
        """
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        self._words = {int(number): said for number, said in words.items()}
        restore = take_signals(dict.fromkeys(words, self._on_signal), self._writing.fileno())

        def end() -> None:
            restore()
            self._words = {}

        return end

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Has the first signal to stop within the block raise `StartInterrupted` on the main thread, too."""
        self._interrupts = self.is_hearing
        try:
            yield
        finally:
            self._interrupts = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # The number is there already, unless user code has taken the descriptor: an event loop does, and gives none
        # back.
        mine = self._writing.fileno()
        found = signal.set_wakeup_fd(mine, warn_on_full_buffer=False)
        if found != mine:
            self._write(number)
            if found >= 0:
                signal.set_wakeup_fd(found, warn_on_full_buffer=False)
        if self._interrupts and self._words.get(number) in STOPS:
            self._interrupts = False
            raise StartInterrupted

    def close(self) -> None:
        """Closes the descriptors. Words that are added afterwards are lost."""
        self._reading.close()
        self._writing.close()
