"""The differences between a declared topic and the topic of the cluster, each with the change that ends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from awoke.payloads.declared_topics.declaration import Declaration, is_same


class DescribedPartition(Protocol):
    """One partition of a topic."""

    @property
    def replicas(self) -> Sequence[int]:
        """The ids of the brokers that have it."""


class DescribedTopic(Protocol):
    """One topic of the cluster."""

    @property
    def partitions(self) -> Sequence[DescribedPartition]: ...


class DescribedSetting(Protocol):
    """One setting of a topic."""

    @property
    def value(self) -> str | None:
        """None where brokers do not tell it."""


class DescribesTopics(Protocol):
    """Describes the settings of topics."""

    def describe_configs(self, topic: str) -> Mapping[str, DescribedSetting]:
        """Returns all settings that the brokers know for a topic, by name. Blocks."""


class ChangesTopics(Protocol):
    """Makes topics, and changes them. Its functions block."""

    def create_topic(
        self, name: str, *, partitions: int = -1, replicas: int = -1, config: Mapping[str, str] | None = None
    ) -> None: ...
    def create_partitions(self, topic: str, total: int) -> None: ...
    def alter_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Sets some settings of a topic, and leaves the others alone."""


class TopicCluster(DescribesTopics, ChangesTopics, Protocol):
    """Topics of a cluster: described, made and changed."""

    def describe_topic(self, name: str) -> DescribedTopic:
        """Returns one topic. Blocks.

        Raises:
            UnknownTopic: There is none of this name.
        """


class DifferenceRow(NamedTuple):
    """One difference, as people and programs read it."""

    topic: str
    option: str
    """The option of the declaration: `topic`, `partitions`, `replication`, or the name of a setting."""
    found: str
    """The cluster's value."""
    declared: str
    change: str
    """The change that `awoke topics apply` makes."""


class TopicDifference(msgspec.Struct, frozen=True, kw_only=True):
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

    def rows(self) -> Sequence[DifferenceRow]:
        """Returns the difference in rows; only settings have several."""
        raise NotImplementedError

    def make(self, cluster: ChangesTopics) -> str:
        """Changes the cluster, and returns a sentence that says so; only if `is_made`. Blocks.

        Raises:
            KafkaError: The brokers refuse it. OperationTimeout: They do not answer.
        """
        raise NotImplementedError


class TopicMissing(TopicDifference, frozen=True, kw_only=True):
    """The cluster has no such topic."""

    declaration: Declaration

    def rows(self) -> Sequence[DifferenceRow]:
        """Returns one row."""
        return [DifferenceRow(self.topic, "topic", "missing", self.declaration.text(), "create it")]

    def make(self, cluster: ChangesTopics) -> str:
        """Creates the topic. Blocks."""
        partitions, replication, config = self.declaration
        cluster.create_topic(self.topic, partitions=partitions or -1, replicas=replication or -1, config=config)
        return f"topic {self.topic} created: {self.declaration.text()}"


class PartitionsMissing(TopicDifference, frozen=True, kw_only=True):
    """The topic has fewer partitions than declared."""

    found: int
    declared: int

    @property
    def note(self) -> str:
        """The consequence for keys."""
        text = "with more partitions, later messages of a key may go to another one than the earlier messages"
        return f"{self.topic}: {text}"

    def rows(self) -> Sequence[DifferenceRow]:
        """Returns one row."""
        change = f"add {self.declared - self.found}"
        return [DifferenceRow(self.topic, "partitions", str(self.found), str(self.declared), change)]

    def make(self, cluster: ChangesTopics) -> str:
        """Adds partitions. Blocks."""
        cluster.create_partitions(self.topic, self.declared)
        return f"topic {self.topic}: {self.declared} partitions instead of {self.found}"


class PartitionsExtra(TopicDifference, frozen=True, kw_only=True):
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

    def rows(self) -> Sequence[DifferenceRow]:
        """Returns one row."""
        return [DifferenceRow(self.topic, "partitions", str(self.found), str(self.declared), "none")]


class ReplicationDiffers(TopicDifference, frozen=True, kw_only=True):
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

    def rows(self) -> Sequence[DifferenceRow]:
        """Returns one row."""
        return [DifferenceRow(self.topic, "replication", self._found(), str(self.declared), "none")]


class SettingDiffers(NamedTuple):
    """A setting with another value than declared."""

    name: str
    found: str | None
    """None: the brokers do not list a setting of this name."""
    declared: str


class SettingsDiffer(TopicDifference, frozen=True, kw_only=True):
    """Settings of the topic have other values than declared. One request changes all of them, or none."""

    settings: tuple[SettingDiffers, ...]

    @property
    def note(self) -> str | None:
        """The settings that brokers will probably refuse."""
        unknown = ", ".join(each.name for each in self.settings if each.found is None)
        return f"{self.topic}: the brokers list no setting {unknown}" if unknown else None

    def rows(self) -> Sequence[DifferenceRow]:
        """Returns a row for each setting."""
        return [
            DifferenceRow(
                self.topic, each.name, "unknown" if each.found is None else each.found, each.declared, "set it"
            )
            for each in self.settings
        ]

    def make(self, cluster: ChangesTopics) -> str:
        """Sets the settings. Blocks."""
        cluster.alter_configs(self.topic, {each.name: each.declared for each in self.settings})
        return f"topic {self.topic}: set {', '.join(f'{each.name}={each.declared}' for each in self.settings)}"


def numbers_that_differ(topic: str, declaration: Declaration, found: DescribedTopic) -> Iterator[TopicDifference]:
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
