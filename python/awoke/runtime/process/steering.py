"""Steers the partitions of a running app, as an operator or the app itself asks. Nothing here asks a worker."""

from __future__ import annotations

from collections.abc import Callable

from awoke.errors import ConfigError
from awoke.runtime.process.group_run import GroupRun
from awoke.runtime.watch.observed import Observed


class Steering(Observed):
    """The part of a running app that changes the progress of its partitions. Any thread.

    `group` is the name of one consumer group of the app, or None for all of them. Each method raises ConfigError for
    a name that the app does not have.
    """

    def _named(self, group: str | None) -> list[GroupRun]:
        """Returns all groups, or the one of this name.

        Raises:
            ConfigError: The app has no group of this name.
        """
        found = [each for each in self.joining if group in (None, each.group)]
        if not found and group is not None:
            names = ", ".join(each.group for each in self.joining)
            raise ConfigError(f"app {self.app.name!r} has no group {group!r}; its groups are: {names}", "group")
        return found

    def steer(self, group: str | None, change: Callable[[GroupRun], bool]) -> bool:
        """Changes the partitions of all groups, or of one; returns whether any of them was changed.

        Blocks as the change does: only a seek to a time blocks.
        """
        return True in [change(each) for each in self._named(group)]

    def resume(self, topic: str, partition: int, group: str | None = None) -> bool:
        """Resumes a partition that is paused or stuck, in all groups or in one; returns whether it was. Does not
        block."""
        return self.steer(group, lambda run: run.resume(topic, partition))

    def pause(self, topic: str, partition: int, why: str, group: str | None = None) -> bool:
        """Pauses a partition until `resume` or the end of its assignment; returns false where it is not assigned.

        Running jobs finish. Does not block.
        """
        return self.steer(group, lambda run: run.pause(topic, partition, why))

    def blocking(self, topic: str, partition: int, group: str | None = None) -> list[int]:
        """Returns the offsets of the messages that fail and are tried again, in order. Does not block."""
        found = [each.failures.blocking(topic, partition) for each in self._named(group)]
        return sorted({offset for offsets in found for offset in offsets})
