"""Compatibility levels: which versions a new schema is compared with, and which of the two schemas reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from awoke.payloads.registry.compatibility import LEVELS
from awoke.testing.registry.kinds import Parsed, incompatibilities
from awoke.testing.registry.refusal import invalid_level, subject_not_found


class Earlier(NamedTuple):
    """An earlier version of a subject."""

    number: int
    schema: Parsed


def checked(level: object) -> str:
    """Returns a level in capitals.

    Raises:
        Refusal: There is no such level (42203).
    """
    if not isinstance(level, str) or level.upper() not in LEVELS:
        raise invalid_level(level, tuple(LEVELS))
    return level.upper()


def compared(level: str, versions: Sequence[Earlier]) -> Sequence[Earlier]:
    """Returns those of a subject's versions that a new schema must be compatible with: all, the latest or none."""
    if level == "NONE":
        return ()
    return versions if LEVELS[level].is_transitive else versions[-1:]


def reasons(level: str, new: Parsed, versions: Sequence[Earlier]) -> list[str]:
    """Returns the reasons why a new schema is incompatible with earlier versions, each with its reader and writer.

    BACKWARD: the new schema reads the data of earlier ones. FORWARD: earlier schemas read its data. FULL: both.
    """
    found: list[str] = []
    for earlier in versions:
        name = f"version {earlier.number}"
        if LEVELS[level].reads_earlier:
            messages = incompatibilities(new, earlier.schema)
            found += [f"{each} (reader: the new schema, writer: {name})" for each in messages]
        if LEVELS[level].is_read_by_earlier:
            messages = incompatibilities(earlier.schema, new)
            found += [f"{each} (reader: {name}, writer: the new schema)" for each in messages]
    return found


class Levels:
    """The global compatibility level, and those of subjects. For one thread at a time.

    Raises:
        Refusal: There is no such level (42203).
    """

    def __init__(self, level: str) -> None:
        self._first = self.common = checked(level)
        """The level of subjects that have none of their own."""
        self._own: dict[str, str] = {}

    def own(self, subject: str) -> str | None:
        """Returns a subject's own level; None if it has none."""
        return self._own.get(subject)

    def applied_to(self, subject: str) -> str:
        """Returns the level that applies to a subject: its own, else the global one."""
        return self._own.get(subject, self.common)

    def set(self, level: object, subject: str | None = None) -> str:
        """Sets the level of a subject, or at None the global one, and returns it. The subject need not exist.

        Raises:
            Refusal: There is no such level (42203).
        """
        found = checked(level)
        if subject is None:
            self.common = found
        else:
            self._own[subject] = found
        return found

    def reset(self, subject: str | None = None) -> str:
        """Removes the level of a subject, or resets the global one, and returns the level as it was.

        Raises:
            Refusal: The subject has no level of its own (40401).
        """
        if subject is None:
            before, self.common = self.common, self._first
            return before
        if subject not in self._own:
            raise subject_not_found(subject)
        return self._own.pop(subject)

    def forget(self, subject: str) -> None:
        """Removes the level of a subject, if it has one."""
        self._own.pop(subject, None)
