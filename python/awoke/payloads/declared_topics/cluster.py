"""The part of a cluster's administration that declared topics need; `awoke.Admin` has all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


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


class Described(Protocol):
    """Describes the settings of topics."""

    def describe_configs(self, topic: str) -> Mapping[str, DescribedSetting]:
        """Returns all settings that the brokers know for a topic, by name. Blocks."""


class Changing(Protocol):
    """Makes topics, and changes them. Its functions block."""

    def create_topic(
        self, name: str, *, partitions: int = -1, replicas: int = -1, config: Mapping[str, str] | None = None
    ) -> None: ...
    def create_partitions(self, topic: str, total: int) -> None: ...
    def alter_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Sets some settings of a topic, and leaves the others alone."""


class Cluster(Described, Changing, Protocol):
    """Topics of a cluster: described, made and changed."""

    def describe_topic(self, name: str) -> DescribedTopic:
        """Returns one topic. Blocks.

        Raises:
            UnknownTopic: There is none of this name.
        """
