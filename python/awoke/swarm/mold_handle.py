"""A mold as its supervisor sees it."""

from __future__ import annotations

import contextlib
import signal
import socket
from enum import StrEnum

from awoke.swarm import protocol
from awoke.swarm.pidfd import Pidfd
from awoke.waiting.time import monotonic_s


class MoldState(StrEnum):
    """The life of a mold."""

    IMPORTING = "importing"
    READY = "ready"
    """Forks nodes."""
    ENDING = "ending"
    """Killed or ended. Its control socket may still have messages about nodes that it has forked."""


class MoldHandle:
    """The process that nodes are forked from."""

    def __init__(self, generation: int, pidfd: Pidfd, control: socket.socket) -> None:
        self.generation, self.pidfd, self.control = generation, pidfd, control
        self.state = MoldState.IMPORTING
        self.exit_code: int | None = None
        """Set when the process has been reaped."""
        self.is_at_end = False
        """True once the last message was read: no process has the other end of the control socket."""
        self.is_dropped = False
        """True if the supervisor ends it: that is no failure."""
        self.is_refused = False
        self.single = ""
        """The reason why only one node may run its app; empty where any number may."""
        """True if the app can't run as it is: another attempt ends the same way."""
        self.last_error = ""
        self._ready_s: float | None = None

    def become_ready(self) -> None:
        """Records that the app is imported."""
        self.state, self._ready_s = MoldState.READY, monotonic_s()

    @property
    def served_s(self) -> float | None:
        """The seconds since it was ready; `None` if it never was."""
        return None if self._ready_s is None else monotonic_s() - self._ready_s

    def fork(self, node: int, descriptor: int) -> bool:
        """Asks for a node, which gets this descriptor; returns false if the mold takes no requests."""
        if self.state is not MoldState.READY:
            return False
        try:
            socket.send_fds(self.control, [protocol.encode(protocol.Fork(node))], [descriptor])
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """Kills it, also if it is stopped. It has nothing to finish."""
        self.state = MoldState.ENDING
        self.pidfd.send(signal.SIGKILL)

    def close(self) -> None:
        """Closes its descriptors."""
        with contextlib.suppress(OSError):
            self.control.close()
        self.pidfd.close()
