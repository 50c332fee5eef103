"""This process, as its logs, its metrics and its reports to consoles name it.

It stands alone because a supervisor, which writes a log, loads nothing else of these.
"""

from __future__ import annotations


class ThisProcess:
    """The facts of the process that runs. A fork of a swarm sets them before anything else."""

    node: int | None = None
    """Its number in a swarm; None for a process alone."""
