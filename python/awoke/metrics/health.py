"""The health of a process."""

from __future__ import annotations

from typing import NamedTuple


class Health(NamedTuple):
    """The health of a process, with the reasons of bad health."""

    is_healthy: bool
    reasons: list[str]
    """One sentence for each problem; empty when the process is healthy."""
