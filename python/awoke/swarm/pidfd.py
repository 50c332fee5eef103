"""A process by its descriptor: a signal can't reach another process that gets its number later."""

from __future__ import annotations

import os
import signal
from typing import Self


class Pidfd:
    """One process. Readable, for a selector, when it has ended."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor = descriptor
        self.pid = pid
        self._exit_code: int | None = None

    @classmethod
    def open(cls, pid: int) -> Self:
        """Returns a process that runs, or was not reaped.

        Raises:
            ProcessLookupError: There is no process of this number.
        """
        return cls(os.pidfd_open(pid), pid)

    @classmethod
    def received(cls, descriptor: int, pid: int) -> Self | None:
        """Returns the process of a descriptor that another process has sent.

        Closes the descriptor and returns `None` if it is no pidfd of a process that this one may signal.
        """
        try:
            signal.pidfd_send_signal(descriptor, 0)
        except OSError:
            os.close(descriptor)
            return None
        return cls(descriptor, pid)

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def is_alive(self) -> bool:
        """Returns whether it has not ended. Does not block."""
        return self.send(0)

    def send(self, number: int) -> bool:
        """Signals it; returns false if it has ended, or now belongs to another user. Does not block."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def reap(self) -> int | None:
        """Reaps it and returns its exit code, negative for a signal. Does not block.

        Returns `None` while it runs, or is not a child of this process yet. SIGCHLD comes when either changes.
        """
        if self._exit_code is None:
            try:
                ended = os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return None  # Its parent has not ended. It becomes a child of this process a moment later.
            if ended is None:
                return None
            is_exit = ended.si_code == os.CLD_EXITED
            self._exit_code = ended.si_status if is_exit else -ended.si_status
        return self._exit_code

    def close(self) -> None:
        """Closes the descriptor. Closing again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
