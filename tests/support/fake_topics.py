"""A cluster whose topics are described, made and changed in memory, as `awoke.Admin` does it on brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from awoke.admin import PartitionInfo, TopicInfo
from awoke.errors import AwokeError, KafkaError, UnknownTopic

DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000", "min.cleanable.dirty.ratio": "0.5"}
"""The settings that this cluster knows, with the brokers' values."""


class Setting(NamedTuple):
    """One setting of a topic."""

    value: str | None


class FakeTopics:
    """A cluster with topics: their replicas by partition, and the settings that are their own.

    `refused` has the errors of later changes, by the name of the function. `made` has all changes.
    """

    def __init__(self, **topics: list[int]) -> None:
        self.replicas = topics
        self.configs: dict[str, dict[str, str | None]] = {name: {} for name in topics}
        self.refused: dict[str, AwokeError] = {}
        self.made: list[tuple[Any, ...]] = []
        self.described: list[str] = []

    def describe_topic(self, name: str, timeout_s: float = 0.0) -> TopicInfo:
        if name not in self.replicas:
            raise UnknownTopic(f"topic {name!r} does not exist", 3, "UNKNOWN_TOPIC_OR_PART")
        partitions = [
            PartitionInfo(number, 1, list(range(count)), [1]) for number, count in enumerate(self.replicas[name])
        ]
        return TopicInfo(name, partitions)

    def find_topic(self, name: str, timeout_s: float, new_within_s: float) -> TopicInfo:
        return self.describe_topic(name)

    def describe_configs(self, topic: str) -> Mapping[str, Setting]:
        self._refuse("describe_configs")
        self.described.append(topic)
        return {name: Setting(value) for name, value in {**DEFAULTS, **self.configs[topic]}.items()}

    def create_topic(
        self, name: str, *, partitions: int = -1, replicas: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        self._refuse("create_topic")
        self.made.append(("create", name, partitions, replicas, dict(config or {})))
        self.replicas[name] = [max(replicas, 1)] * max(partitions, 1)
        self.configs[name] = {**(config or {})}

    def create_partitions(self, topic: str, total: int) -> None:
        self._refuse("create_partitions")
        self.made.append(("partitions", topic, total))
        old = self.replicas[topic]
        self.replicas[topic] = [*old, *[old[0]] * (total - len(old))]

    def alter_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        self._refuse("alter_configs")
        for name in configs.keys() - DEFAULTS.keys():
            raise KafkaError(f"Unknown topic config name: {name}", 40, "INVALID_CONFIG")
        self.made.append(("settings", topic, dict(configs)))
        self.configs[topic].update(configs)

    def _refuse(self, function: str) -> None:
        if function in self.refused:
            raise self.refused[function]
