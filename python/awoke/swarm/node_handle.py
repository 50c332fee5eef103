"""A node as its supervisor sees it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from enum import StrEnum

from awoke.swarm import linux
from awoke.swarm.pidfd import Pidfd
from awoke.swarm.protocol import TEXT_MAX, Vitals

logger = logging.getLogger(__name__)


class NodeState(StrEnum):
    """The life of a node."""

    QUEUED = "queued"
    """Is started as soon as there is a mold."""
    FORKING = "forking"
    BOOTING = "booting"
    UP = "up"
    STOPPING = "stopping"
    """Its process was told to end, for whatever reason."""
    ENDING = "ending"
    """Its process has ended; the system gives back its memory, ports and locks."""
    ENDED = "ended"
    WAITING = "waiting"
    """Is started after a back-off."""


VITALS_LATE_S = 10.0
"""After a change, signs of life count the partitions rightly within this time."""

ALLOWED: dict[NodeState, set[NodeState]] = {
    NodeState.QUEUED: {NodeState.FORKING, NodeState.WAITING, NodeState.ENDED},
    NodeState.FORKING: {NodeState.BOOTING, NodeState.QUEUED, NodeState.WAITING, NodeState.ENDED},
    NodeState.BOOTING: {NodeState.UP, NodeState.STOPPING, NodeState.ENDING},
    NodeState.UP: {NodeState.STOPPING, NodeState.ENDING},
    NodeState.STOPPING: {NodeState.ENDING},
    NodeState.ENDING: {NodeState.ENDED},
    NodeState.ENDED: {NodeState.FORKING, NodeState.QUEUED, NodeState.WAITING},
    NodeState.WAITING: {NodeState.FORKING, NodeState.QUEUED, NodeState.ENDED},
}
"""The states that may follow each state."""


class NodeHandle:
    """One place in the swarm, and the process that has it now."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = NodeState.QUEUED
        self.pidfd: Pidfd | None = None
        self.control: socket.socket | None = None
        self.tripwire: int | None = None
        """At its end when the process ends, some milliseconds before the pidfd tells (see `lifeline.rs`)."""
        self.vitals: Vitals | None = None
        self.heard_s = self.began_s = time.monotonic()
        self.restarts = 0
        self.assigned = 0
        """How many partitions it holds, as it said last."""
        self._assigned_s = 0.0
        """When it said so because that had changed."""
        self.assigned_ns = 0
        """When the process last had an assignment, in nanoseconds of the monotonic clock; 0 never."""
        self.is_wanted = True
        """Whether another process is to follow this one."""
        self.is_quiet = False
        """Whether its process was told to begin no new jobs."""
        self.why_not_ready = ""
        """What its process has said: since when no broker is connected; empty where one is."""
        self.is_asked = False
        """Whether it was asked to end: that is no failure."""
        self.last_error = ""
        self.failure = ""
        """Why the process that it has now failed; empty when it did not say."""
        self.mold = 0
        """The generation of the mold that it was forked from."""

    def enter(self, state: NodeState) -> None:
        """Changes the state. A change that is not allowed is a bug: it is logged, and the swarm goes on."""
        if state is not self.state and state not in ALLOWED[self.state]:
            logger.error("node %d goes from %s to %s, which is a bug of awoke", self.number, self.state, state)
        self.state = state

    def begin(self, control: socket.socket, mold: int) -> None:
        """A process is being forked."""
        self.enter(NodeState.FORKING)
        self.control, self.mold = control, mold
        self.vitals, self.assigned_ns, self.is_asked, self.failure = None, 0, False, ""
        self.assigned = 0
        self.is_quiet, self.why_not_ready = False, ""
        self.began_s = self.heard_s = time.monotonic()

    def forked(self, pidfd: Pidfd) -> None:
        """Its process is there."""
        self.enter(NodeState.BOOTING)
        self.pidfd = pidfd

    def holds(self, partitions: int) -> None:
        """It has said how many partitions it holds now."""
        self.assigned, self._assigned_s = partitions, time.monotonic()

    def lives(self, vitals: Vitals) -> None:
        """It has given a sign of life, whose count of partitions may be some seconds old."""
        self.vitals = vitals
        if time.monotonic() - self._assigned_s > VITALS_LATE_S:
            self.assigned = vitals.assigned

    def quiet(self) -> None:
        """Has its process begin no new jobs."""
        if self.pidfd is not None:
            self.is_quiet = self.pidfd.send(signal.SIGTSTP)

    def fail(self, why: str) -> None:
        """Notes why its process fails."""
        self.failure = self.last_error = why[:TEXT_MAX]

    def end(self, state: NodeState = NodeState.ENDED) -> None:
        """Its process has ended and been reaped, or there will be none."""
        self.enter(state)
        self.close()

    def close(self) -> None:
        """Closes its descriptors."""
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
