"""The signals that a supervisor takes, as bytes on a socket that its loop waits for."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable

from awoke.observe.web.loop import Loop

SIGNALS = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGHUP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR2,
    signal.SIGCHLD,
)


class Signals:
    """The socket that the system's signal handler writes to. For the main thread."""

    def __init__(self, loop: Loop, on_signal: Callable[[int], object]) -> None:
        self._loop, self._on_signal = loop, on_signal
        self._reading, self._writing = socket.socketpair()

    def open(self) -> None:
        """Takes the signals: none of them ends or stops this process any more."""
        for end in (self._reading, self._writing):
            end.setblocking(False)
        for each in SIGNALS:
            signal.signal(each, lambda *_: None)
            signal.siginterrupt(each, False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        self._loop.watch(self._reading, self._on_readable)

    def close(self) -> None:
        """Takes no more signals."""
        signal.set_wakeup_fd(-1)
        self._loop.forget(self._reading)
        self._reading.close()
        self._writing.close()

    def _on_readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in self._reading.recv(4096):
                self._on_signal(number)
