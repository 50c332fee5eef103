"""Whether all is well in a process, and if not, why."""

from __future__ import annotations

from typing import NamedTuple


class Health(NamedTuple):
    """Whether all is well, and if not, what is wrong."""

    is_healthy: bool
    reasons: list[str]
    """One sentence for each thing that is wrong; empty when all is well."""
