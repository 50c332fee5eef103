"""A process by its descriptor: whoever gets its number later can't be hit."""

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
        """Of a process that is alive, or has not been waited for.

        Raises:
            ProcessLookupError: there is none.
        """
        return cls(os.pidfd_open(pid), pid)

    @classmethod
    def received(cls, descriptor: int, pid: int) -> Self | None:
        """Returns the process whose descriptor another process has sent; `None`, and closes it, where it is none.

        It must be a process that this one may signal.
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
        """Whether it has not ended. Does not block."""
        return self.send(0)

    def send(self, number: int) -> bool:
        """Signals it; returns false when it has ended, or belongs to another user by now. Does not block."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def reap(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs, or is not ours yet. Does not block."""
        if self._exit_code is None:
            try:
                ended = os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                return None  # Its parent has not ended: it becomes ours in a moment.
            if ended is None:
                return None
            is_exit = ended.si_code == os.CLD_EXITED
            self._exit_code = ended.si_status if is_exit else -ended.si_status
        return self._exit_code

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
