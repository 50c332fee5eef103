"""What Linux offers a supervisor beyond Python's standard library. Without it there is no swarm."""

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
    """Refuse where the system lacks what a swarm needs.

    Raises:
        ConfigError: it is not Linux with pidfds (5.4 or later).
    """
    if not sys.platform.startswith("linux") or not hasattr(os, "pidfd_open"):
        raise ConfigError("--nodes needs Linux 5.4 or later: run one process for each node instead", "nodes")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise SystemFailure(f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def become_subreaper() -> None:
    """Have descendants whose parents end become children of this process."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def signal_when_parent_ends(number: int) -> None:
    """Have this process signalled when its parent ends; the parent is the thread that forked, or who inherited it."""
    _prctl(PR_SET_PDEATHSIG, number)


def tasks() -> list[str]:
    """The threads of this process, by name, the first one included."""
    found = []
    for task in sorted(Path("/proc/self/task").iterdir(), key=lambda each: int(each.name)):
        found.append((task / "comm").read_text().strip())
    return found


def resident_bytes(pid: int) -> int:
    """What a process has in memory, shared pages included; 0 when it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """The same with each shared page counted as the process's share of it; 0 when it has gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def end_children() -> None:
    """Kills and reaps all children. Those of a process that ends become ours, so there may be more each time."""
    while left := children():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # A child that has not been waited for: its number is still its own.
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def reap_children(known: Collection[int | None]) -> None:
    """Reaps the children that have ended, but for those that are known: they are reaped by their descriptors."""
    for pid in children():
        if pid not in known:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def children() -> list[int]:
    """Returns the processes whose parent this one is."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
