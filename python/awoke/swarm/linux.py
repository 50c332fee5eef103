"""What a swarm needs of Linux and Python's standard library lacks, and messages to systemd.

systemd asks for them in `NOTIFY_SOCKET` and `WATCHDOG_USEC`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Collection, Iterator
from enum import Enum, auto
from pathlib import Path

from awoke.errors import ConfigError, SystemFailure
from awoke.observe.web.deadlines import Deadline, Deadlines

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PF_EXITING = 0x4
"""The flag of a thread that ends. Its entry in `/proc` may still be there when it has been joined."""


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


def tasks() -> dict[int, str]:
    """Returns the threads of this process that have not begun to end: number and name, the first one included."""
    found = {}
    for task in sorted(Path("/proc/self/task").iterdir(), key=lambda each: int(each.name)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It has ended meanwhile.
            flags = int((task / "stat").read_text().rpartition(")")[2].split()[6])
            if not flags & PF_EXITING:
                found[int(task.name)] = (task / "comm").read_text().strip()
    return found


HEADER_BYTES = 20
DATABASES = {"SQLite": (0, b"SQLite format 3\0"), "LMDB": (16, (0xBEEFC0DE).to_bytes(4, sys.byteorder))}
"""The marks by which embedded databases know their files, and the places of these."""


def connections() -> list[str]:
    """Returns the connections of this process to a server: over TCP, or to a socket with a name."""
    found = []
    for descriptor, _ in _descriptors("socket:"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.type == socket.SOCK_STREAM and (peer := copy.getpeername()):
                shown = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
                found.append(f"a connection to {shown}")
    return found


def has_epoll() -> bool:
    """Tells whether this process has an epoll, as an event loop does: forked processes would register with the same."""
    return any(_descriptors("anon_inode:[eventpoll]"))


def databases() -> list[str]:
    """Returns the files of embedded databases that this process has open: locks and caches don't survive a fork."""
    found = []
    for descriptor, name in _descriptors("/"):
        with contextlib.suppress(OSError):
            start = os.pread(descriptor, HEADER_BYTES, 0)
            found += [f"{kind}'s file {name}" for kind, (at, mark) in DATABASES.items() if start[at:].startswith(mark)]
    return sorted(set(found))


def _descriptors(kind: str) -> Iterator[tuple[int, str]]:
    """Gives the open descriptors whose files have such names, beyond the standard streams."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if int(link.name) > 2 and (name := os.readlink(link)).startswith(kind):
                yield int(link.name), name


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process in bytes, shared pages included; 0 if it has gone, or can't be read."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int | None:
    """Returns the memory of a process in bytes, with its share of each shared page; None if that can't be read.

    Some kernels and sandboxes do not tell it, and it can't be read of a process that has gone.
    """
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


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


def children(group: int | None = None) -> list[int]:
    """Returns the numbers of this process's children, whichever thread has started them: all, or those of a group of
    processes. None where the process may open no more files."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(word) for word in (task / "children").read_text().split()]
    return found if group is None else [pid for pid in found if _group_of(pid) == group]


def _group_of(pid: int) -> int | None:
    """Returns the group of a child; `None` for one that only has to be waited for."""
    with contextlib.suppress(OSError):
        state, _, group = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
        return None if state in "ZX" else int(group)
    return None


def name_of(pid: int) -> str:
    """Returns the name of a process's program; empty if it has gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class SystemdTimer(Enum):
    """The deadline of the next sign of life."""

    WATCHDOG = auto()


def notify_systemd(state: str) -> None:
    """Sends a state to systemd, if it listens: `READY=1`, `STOPPING=1`, `WATCHDOG=1`. Does not block."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
    # systemd may have gone: the message is not important enough to fail then.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as talk:
        talk.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)


def tell_systemd(deadlines: Deadlines) -> None:
    """Sends systemd a sign of life now and at each deadline, if it wants them."""
    every_s = watchdog_every_s()

    def tell() -> None:
        if every_s is not None:
            notify_systemd("WATCHDOG=1")
            deadlines.set(Deadline(SystemdTimer.WATCHDOG), every_s, tell)

    tell()


def watchdog_every_s() -> float | None:
    """Returns the interval of signs of life, half of the limit that systemd sets; `None` if it wants none."""
    allowed = os.environ.get("WATCHDOG_USEC", "")
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(allowed) / 2e6 if allowed.isdecimal() and int(allowed) > 0 and is_ours else None
