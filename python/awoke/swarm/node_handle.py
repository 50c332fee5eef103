"""A node as its supervisor sees it: its state, its process, and what the process said last."""

from __future__ import annotations

import os
import signal
import socket

from awoke.swarm import linux
from awoke.swarm.nodes import NodeState
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.protocol import TEXT_MAX, Vitals
from awoke.waiting.time import monotonic_s

VITALS_LATE_S = 10.0
"""A sign of life may count the partitions wrongly for this long after they have changed."""


class NodeHandle:
    """One place in the swarm, and the process that has it now. For the supervisor's thread; does not block."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = NodeState.QUEUED
        """Changed by `NodeControl.handle` only."""
        self.pidfd: Pidfd | None = None
        self.control: socket.socket | None = None
        self.tripwire: int | None = None
        """Becomes readable at the process's end, some milliseconds before the pidfd (see `lifeline.rs`)."""
        self.vitals: Vitals | None = None
        self.heard_s = self.began_s = monotonic_s()
        self.restarts = 0
        """The number of restarts after a failure."""
        self.assigned = 0
        """The number of assigned partitions, as the process said last."""
        self._assigned_s = 0.0
        """The moment of the last message about a change of `assigned`."""
        self.assigned_ns = 0
        """The moment of the last assignment, in nanoseconds of the monotonic clock; 0 if there was none."""
        self.is_quiet = False
        """True if its process was told to begin no new jobs."""
        self.why_not_ready = ""
        """The reason why its process has no connection to brokers; empty if it has one."""
        self.last_error = ""
        self.failure = ""
        """The reason why the present process failed; empty if unknown."""
        self.is_name_taken = False
        """True if another process has the name of the present one."""
        self.exit_code, self.ran_s = 0, 0.0
        """The exit code of its last process, negative for a signal, and the run time. Set when it was reaped."""
        self.mold = 0
        """The generation of the mold that it was forked from."""

    def begin(self, control: socket.socket, mold: int) -> None:
        """Prepares the handle for a process that a mold is asked for."""
        self.control, self.mold = control, mold
        self.vitals, self.assigned_ns, self.failure, self.is_name_taken = None, 0, "", False
        self.assigned = 0
        self.is_quiet, self.why_not_ready = False, ""
        self.began_s = self.heard_s = monotonic_s()

    def holds(self, partitions: int) -> None:
        """Records the number of assigned partitions, after a change."""
        self.assigned, self._assigned_s = partitions, monotonic_s()

    def lives(self, vitals: Vitals) -> None:
        """Records a sign of life, whose number of partitions may be some seconds old."""
        self.vitals = vitals
        if monotonic_s() - self._assigned_s > VITALS_LATE_S:
            self.assigned = vitals.assigned

    def quiet(self) -> None:
        """Tells its process to begin no new jobs."""
        self.is_quiet = self.send(signal.SIGTSTP)

    def send(self, number: int) -> bool:
        """Signals its process; returns false if there is none."""
        return self.pidfd is not None and self.pidfd.send(number)

    def fail(self, why: str, *, is_name_taken: bool = False) -> None:
        """Records the reason why its process fails."""
        self.failure = self.last_error = why[:TEXT_MAX]
        self.is_name_taken = is_name_taken

    def close(self) -> None:
        """Closes its descriptors."""
        self.drop_tripwire()
        if self.pidfd is not None:
            self.pidfd.close()
        if self.control is not None:
            self.control.close()
        self.pidfd = self.control = None

    def drop_tripwire(self) -> None:
        """Closes the tripwire, which has told of the end or can't be watched."""
        if self.tripwire is not None:
            os.close(self.tripwire)
            self.tripwire = None

    @property
    def pid(self) -> int | None:
        """The number of its process, for people."""
        return None if self.pidfd is None else self.pidfd.pid

    @property
    def uptime_s(self) -> float:
        """Seconds since its process began."""
        return monotonic_s() - self.began_s

    @property
    def memory_bytes(self) -> int:
        """The resident memory in bytes, as the process said last, or as the system says."""
        if self.vitals is not None:
            return self.vitals.resident_bytes
        return 0 if self.pid is None else linux.resident_bytes(self.pid)

    def status(self) -> dict[str, object]:
        """Returns the node as `awoke status` shows it."""
        vitals = self.vitals
        return {
            "node": self.number,
            "pid": self.pid,
            "state": self.state.shown,
            "is_quiet": self.is_quiet,
            "memory_bytes": self.memory_bytes,
            "jobs": 0 if vitals is None else vitals.jobs,
            "oldest_job_s": 0.0 if vitals is None else vitals.oldest_job_ms / 1_000,
            "gil_wait_s": 0.0 if vitals is None else vitals.gil_wait_ms / 1_000,
            "assigned": self.assigned,
            "assigned_ns": self.assigned_ns,
            "lag": None if vitals is None or vitals.lag < 0 else vitals.lag,
            "restarts": self.restarts,
            "mold": self.mold,
            "uptime_s": round(self.uptime_s, 1),
            "last_error": self.last_error,
        }
