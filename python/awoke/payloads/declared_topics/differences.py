"""The differences between a declared topic and the topic of the cluster, each with the change that ends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from awoke.payloads.declared_topics.cluster import Changing, DescribedSetting, DescribedTopic
from awoke.payloads.declared_topics.declaration import Declaration, is_same


class Row(NamedTuple):
    """One difference, as people and programs read it."""

    topic: str
    option: str
    """The option of the declaration: `topic`, `partitions`, `replication`, or the name of a setting."""
    found: str
    """The cluster's value."""
    declared: str
    change: str
    """The change that `awoke topics apply` makes."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which a topic is not as it is declared."""

    topic: str

    @property
    def is_made(self) -> bool:
        """True if `make` ends the difference; false if it is only reported."""
        return True

    @property
    def note(self) -> str | None:
        """The fact that an operator must know before the change, or without it; None for no such fact."""
        return None

    def rows(self) -> Sequence[Row]:
        """Returns the difference in rows; only settings have several."""
        raise NotImplementedError

    def make(self, cluster: Changing) -> str:
        """Changes the cluster, and returns a sentence that says so; only if `is_made`. Blocks.

        Raises:
            KafkaError: The brokers refuse it. OperationTimeout: They do not answer.
        """
        raise NotImplementedError


class TopicMissing(Difference, frozen=True, kw_only=True):
    """The cluster has no such topic."""

    declaration: Declaration

    def rows(self) -> Sequence[Row]:
        """Returns one row."""
        return [Row(self.topic, "topic", "missing", self.declaration.text(), "create it")]

    def make(self, cluster: Changing) -> str:
        """Creates the topic. Blocks."""
        partitions, replication, config = self.declaration
        cluster.create_topic(self.topic, partitions=partitions or -1, replicas=replication or -1, config=config)
        return f"topic {self.topic} created: {self.declaration.text()}"


class PartitionsMissing(Difference, frozen=True, kw_only=True):
    """The topic has fewer partitions than declared."""

    found: int
    declared: int

    @property
    def note(self) -> str:
        """The consequence for keys."""
        text = "with more partitions, later messages of a key may go to another one than the earlier messages"
        return f"{self.topic}: {text}"

    def rows(self) -> Sequence[Row]:
        """Returns one row."""
        change = f"add {self.declared - self.found}"
        return [Row(self.topic, "partitions", str(self.found), str(self.declared), change)]

    def make(self, cluster: Changing) -> str:
        """Adds partitions. Blocks."""
        cluster.create_partitions(self.topic, self.declared)
        return f"topic {self.topic}: {self.declared} partitions instead of {self.found}"


class PartitionsExtra(Difference, frozen=True, kw_only=True):
    """The topic has more partitions than declared. Kafka removes none."""

    found: int
    declared: int

    @property
    def is_made(self) -> bool:
        """False: it can only be reported."""
        return False

    @property
    def note(self) -> str:
        """The ways out."""
        text = f"Kafka removes no partitions: declare {self.found}, or copy the messages to a new topic"
        return f"{self.topic}: {text}"

    def rows(self) -> Sequence[Row]:
        """Returns one row."""
        return [Row(self.topic, "partitions", str(self.found), str(self.declared), "none")]


class ReplicationDiffers(Difference, frozen=True, kw_only=True):
    """Partitions of the topic have another number of replicas than declared."""

    found: tuple[int, ...]
    """The numbers that occur among its partitions, in order."""
    declared: int

    @property
    def is_made(self) -> bool:
        """False: moving data between brokers is the operator's decision."""
        return False

    @property
    def note(self) -> str:
        """The way out."""
        text = "a change of the replication moves data between brokers: use kafka-reassign-partitions.sh"
        return f"{self.topic}: {text}, or declare {self._found()}"

    def _found(self) -> str:
        return " and ".join(map(str, self.found))

    def rows(self) -> Sequence[Row]:
        """Returns one row."""
        return [Row(self.topic, "replication", self._found(), str(self.declared), "none")]


class SettingDiffers(NamedTuple):
    """A setting with another value than declared."""

    name: str
    found: str | None
    """None: the brokers do not list a setting of this name."""
    declared: str


class SettingsDiffer(Difference, frozen=True, kw_only=True):
    """Settings of the topic have other values than declared. One request changes all of them, or none."""

    settings: tuple[SettingDiffers, ...]

    @property
    def note(self) -> str | None:
        """The settings that brokers will probably refuse."""
        unknown = ", ".join(each.name for each in self.settings if each.found is None)
        return f"{self.topic}: the brokers list no setting {unknown}" if unknown else None

    def rows(self) -> Sequence[Row]:
        """Returns a row for each setting."""
        return [
            Row(self.topic, each.name, "unknown" if each.found is None else each.found, each.declared, "set it")
            for each in self.settings
        ]

    def make(self, cluster: Changing) -> str:
        """Sets the settings. Blocks."""
        cluster.alter_configs(self.topic, {each.name: each.declared for each in self.settings})
        return f"topic {self.topic}: set {', '.join(f'{each.name}={each.declared}' for each in self.settings)}"


def numbers_that_differ(topic: str, declaration: Declaration, found: DescribedTopic) -> Iterator[Difference]:
    """Yields the differences in the numbers of partitions and replicas, which a description of the topic has."""
    declared, count = declaration.partitions, len(found.partitions)
    if declared is not None and count < declared:
        yield PartitionsMissing(topic=topic, found=count, declared=declared)
    if declared is not None and count > declared:
        yield PartitionsExtra(topic=topic, found=count, declared=declared)
    replicas = {len(each.replicas) for each in found.partitions}
    if declaration.replication is not None and replicas - {declaration.replication}:
        yield ReplicationDiffers(topic=topic, found=tuple(sorted(replicas)), declared=declaration.replication)


def settings_that_differ(
    topic: str, config: Mapping[str, str], found: Mapping[str, DescribedSetting]
) -> Iterator[SettingsDiffer]:
    """Yields the difference in the declared settings, if there is one. A value that brokers hide counts as equal."""
    differing = []
    for name, declared in config.items():
        if name not in found:
            differing.append(SettingDiffers(name, None, declared))
            continue
        value = found[name].value
        if value is not None and not is_same(declared, value):
            differing.append(SettingDiffers(name, value, declared))
    if differing:
        yield SettingsDiffer(topic=topic, settings=tuple(differing))
