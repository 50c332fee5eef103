"""Steers the partitions of a running app, as an operator or the app itself asks. Nothing here asks a worker."""

from __future__ import annotations

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

    def _holding(self, topic: str, partition: int, group: str | None) -> list[GroupRun]:
        """Returns the groups, of all or the one of this name, to which a partition is assigned."""
        return [each for each in self._named(group) if each.assigned.find(topic, partition) is not None]

    def resume(self, topic: str, partition: int, group: str | None = None) -> bool:
        """Resumes a partition that is paused or stuck, in all groups or in one; returns whether it was. Does not
        block."""
        return True in [each.resume(topic, partition) for each in self._named(group)]

    def skip(self, topic: str, partition: int, offset: int, group: str | None = None) -> bool:
        """Skips a failing message at its next try, in all groups or in one; returns false where it does not fail.

        Does not block.
        """
        return True in [each.skip(topic, partition, offset) for each in self._named(group)]

    def blocking(self, topic: str, partition: int, group: str | None = None) -> list[int]:
        """Returns the offsets of the messages that fail and are tried again, in order. Does not block."""
        found = [each.failures.blocking(topic, partition) for each in self._named(group)]
        return sorted({offset for offsets in found for offset in offsets})

    def pause(self, topic: str, partition: int, why: str, group: str | None = None) -> bool:
        """Pauses a partition until `resume` or the end of its assignment; returns false where it is not assigned.

        Running jobs finish. Does not block.
        """
        return True in [each.pause(topic, partition, why) for each in self._holding(topic, partition, group)]

    def seek(self, topic: str, partition: int, offset: int, group: str | None = None) -> bool:
        """Goes on from an offset (-2 the first, -1 the end) after the running job; returns false where the partition
        is not assigned. Does not block."""
        return True in [each.seek(topic, partition, offset) for each in self._holding(topic, partition, group)]

    def seek_time(self, topic: str, partition: int, timestamp_ms: int, group: str | None = None) -> bool:
        """Goes on from the first message at or after a time; else as `seek`. Blocks: the brokers look it up.

        Raises:
            KafkaError: The brokers do not answer.
        """
        holding = self._holding(topic, partition, group)
        return True in [each.seek_time(topic, partition, timestamp_ms) for each in holding]

    def retry_now(self, topic: str, partition: int, group: str | None = None) -> bool:
        """Tries the failing messages of a partition again at once; returns false where none fails. Does not block."""
        return True in [each.retry_now(topic, partition) for each in self._named(group)]

    def dead_letter(self, topic: str, partition: int, offset: int, group: str | None = None) -> bool:
        """Sends a failing message to the dead letter topic at its next try, which is now; returns false where it does
        not fail. Does not block.

        Raises:
            ConfigError: Its route has no dead letter topic.
        """
        return True in [each.dead_letter_now(topic, partition, offset) for each in self._named(group)]
