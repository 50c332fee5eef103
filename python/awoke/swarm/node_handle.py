"""A node as its supervisor sees it."""

from __future__ import annotations

import os
import socket
import time
from typing import Literal

from awoke.swarm import linux
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.protocol import Vitals

State = Literal["forking", "booting", "up", "stopping", "ending", "ended", "waiting"]
"""`ending`: the system takes its process apart; `waiting`: for its restart."""


class NodeHandle:
    """One place in the swarm, and the process that has it now."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state: State = "forking"
        self.pidfd: Pidfd | None = None
        self.control: socket.socket | None = None
        self.tripwire: int | None = None
        """At its end when the process ends, some milliseconds before the pidfd tells (see `lifeline.rs`)."""
        self.vitals: Vitals | None = None
        self.heard_s = self.began_s = time.monotonic()
        self.restarts = 0
        self.assigned_ns = 0
        """When the process last had an assignment, in nanoseconds of the monotonic clock; 0 never."""
        self.is_wanted = True
        """Whether another process is to follow this one."""
        self.is_asked = False
        """Whether it was asked to end: that is no failure."""
        self.is_stopping = False
        """Whether its process was told to end, for whatever reason."""
        self.last_error = ""
        self.mold = 0
        """The generation of the mold that it was forked from."""

    def begin(self, control: socket.socket, mold: int) -> None:
        """A process is being forked."""
        self.state, self.control, self.mold = "forking", control, mold
        self.vitals, self.assigned_ns, self.is_asked, self.is_stopping = None, 0, False, False
        self.began_s = self.heard_s = time.monotonic()

    def forked(self, pidfd: Pidfd) -> None:
        """Its process is there."""
        self.state, self.pidfd = "booting", pidfd

    def end(self) -> None:
        """Its process has ended and been reaped."""
        self.state = "ended"
        self.drop_tripwire()
        if self.pidfd is not None:
            self.pidfd.close()
        if self.control is not None:
            self.control.close()
        self.pidfd = self.control = None

    def drop_tripwire(self) -> None:
        """It has told, or there is nothing left to tell."""
        if self.tripwire is not None:
            os.close(self.tripwire)
            self.tripwire = None

    @property
    def pid(self) -> int | None:
        """Its process's number, for people."""
        return None if self.pidfd is None else self.pidfd.pid

    @property
    def uptime_s(self) -> float:
        """Since its process began."""
        return time.monotonic() - self.began_s

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.pidfd is not None

    @property
    def memory_bytes(self) -> int:
        """Resident, as it said last, or as the system says."""
        if self.vitals is not None:
            return self.vitals.resident_bytes
        return 0 if self.pid is None else linux.resident_bytes(self.pid)

    def status(self) -> dict[str, object]:
        """For people and programs."""
        vitals = self.vitals
        return {
            "node": self.number,
            "pid": self.pid,
            "state": self.state,
            "memory_bytes": self.memory_bytes,
            "jobs": 0 if vitals is None else vitals.jobs,
            "oldest_job_s": 0.0 if vitals is None else vitals.oldest_job_ms / 1_000,
            "gil_wait_s": 0.0 if vitals is None else vitals.gil_wait_ms / 1_000,
            "assigned": 0 if vitals is None else vitals.assigned,
            "assigned_ns": self.assigned_ns,
            "lag": None if vitals is None or vitals.lag < 0 else vitals.lag,
            "restarts": self.restarts,
            "uptime_s": round(self.uptime_s, 1),
            "last_error": self.last_error,
        }
