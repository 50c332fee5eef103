"""The memory that the system allows this process, so that defaults fit a small container."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MEGABYTE = 1024 * 1024
LEAST_MB = 8
"""No default is smaller: Kafka's brokers accept batches of a megabyte, which may be compressed."""
V2, V1 = "memory.max", "memory.limit_in_bytes"


def fitting_mb(usual_mb: int, divisor: int, limit_bytes: int | None) -> int:
    """Returns a default in MB: the usual one, or this part of the memory limit where that is less, at least 8."""
    if limit_bytes is None:
        return usual_mb
    return min(usual_mb, max(limit_bytes // divisor // MEGABYTE, LEAST_MB))


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Returns the smallest limit of this process's control groups and its address space; None where there is none.

    `root` is the directory that has `proc` and `sys`. Reads a few small files.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [*_control_group_limits(root), *([] if soft == resource.RLIM_INFINITY else [soft])]
    return min(limits, default=None)


def _control_group_limits(root: Path) -> Iterator[int]:
    for directory, file in _control_groups(root):
        with contextlib.suppress(OSError, ValueError):  # It does not exist, or has no limit: "max".
            yield int((directory / file).read_text())


def _control_groups(root: Path) -> Iterator[tuple[Path, str]]:
    """Gives the control groups of this process, each with its parents, and the file that has the limit there.

    A container may see paths of its host here, which do not exist in it: the top is then the container's own group.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    mounted = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, file = (mounted / "memory", V1) if controllers else (mounted, V2)
        path = PurePosixPath(name.lstrip("/"))
        for each in (path, *path.parents):
            yield top / each, file
