"""The exit codes of awoke's processes: one table for a single process and for a swarm (see `docs/swarm.md`)."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_FAILED = 1
"""The app stopped itself without `sys.exit()`, or no broker answered at its start; a command failed."""
EXIT_USAGE = 2
"""The command line is wrong."""
EXIT_LATE = 3
"""Stopped before all work was done. At the deadline of the shutdown, or at a second signal, jobs still ran, messages
were not acknowledged or offsets not committed; or a process was killed for that."""
EXIT_TOO_MANY_RESTARTS = 4
EXIT_ORPHANED = 5
"""The supervisor of this node died, and the node did not stop in time."""
EXIT_CONFIGURATION = 78
"""Wrong configuration (`EX_CONFIG` of sysexits.h): another attempt ends the same way."""
EXIT_AT_ONCE = 130
"""A third signal ended the process at once."""


def code_of(end: SystemExit) -> int:
    """Returns the exit code that Python makes of a `SystemExit`: its number, 0 for none, 1 for anything else."""
    return end.code & 0xFF if isinstance(end.code, int) else int(end.code is not None)
