"""Functions of Linux that a swarm needs and Python's standard library lacks."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path

from awoke.errors import ConfigError, SystemFailure

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def check_system() -> None:
    """Checks that the system has the functions that a swarm needs.

    Raises:
        ConfigError: The system is not Linux with pidfds (5.4 or later).
    """
    if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
        raise ConfigError("--nodes needs Linux 5.4 or later: run one process for each node instead", "nodes")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise SystemFailure(f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def become_subreaper() -> None:
    """Makes this process the parent of descendants whose parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def signal_when_parent_ends(number: int) -> None:
    """Makes the system signal this process when its parent ends: the thread that forked it, or its later parent."""
    _prctl(PR_SET_PDEATHSIG, number)


def tasks() -> list[str]:
    """Returns the names of this process's threads, the first one included."""
    found = []
    for task in sorted(Path("/proc/self/task").iterdir(), key=lambda each: int(each.name)):
        found.append((task / "comm").read_text().strip())
    return found


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process in bytes, shared pages included; 0 if it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Returns the memory of a process in bytes, with its share of each shared page; 0 if it has gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def end_children() -> None:
    """Kills and reaps all children. Blocks.

    Children of a process that ends become children of this one, so each round may find more.
    """
    while left := children():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # It was not waited for, so its number is not in use again.
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def reap_children(known: Collection[int | None]) -> None:
    """Reaps the children that have ended, except the known ones: those are reaped by their descriptors."""
    for pid in children():
        if pid not in known:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def children() -> list[int]:
    """Returns the numbers of this process's children."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
