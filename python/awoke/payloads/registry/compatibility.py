"""The compatibility levels of a registry: what a new schema is compared with, and which of the two reads."""

from __future__ import annotations

from typing import NamedTuple


class CompatibilityLevel(NamedTuple):
    """One level."""

    reads_earlier: bool
    """True if the new schema must read what was written with earlier ones."""
    is_read_by_earlier: bool
    """True if earlier schemas must read what is written with the new one."""
    is_transitive: bool
    """True if all earlier versions count, and not only the latest."""
    rule: str
    """The rule for people; `{}` stands for the earlier version."""


BACKWARD = "readers with this schema must be able to read what was written with {}"
FORWARD = "readers with {} must be able to read what is written with this schema"
FULL = "this schema and {} must each be able to read what was written with the other"

LEVELS = {
    "NONE": CompatibilityLevel(False, False, False, "the registry compares nothing"),
    "BACKWARD": CompatibilityLevel(True, False, False, BACKWARD),
    "BACKWARD_TRANSITIVE": CompatibilityLevel(True, False, True, BACKWARD),
    "FORWARD": CompatibilityLevel(False, True, False, FORWARD),
    "FORWARD_TRANSITIVE": CompatibilityLevel(False, True, True, FORWARD),
    "FULL": CompatibilityLevel(True, True, False, FULL),
    "FULL_TRANSITIVE": CompatibilityLevel(True, True, True, FULL),
}
"""By their names, as registries know them."""
UNKNOWN = CompatibilityLevel(False, False, False, "awoke does not know this level; the registry decides")


def level_of(name: str) -> CompatibilityLevel:
    """Returns a level; of a name that only another registry knows, one that says so."""
    return LEVELS.get(name, UNKNOWN)
