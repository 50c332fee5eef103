"""A cluster of topics, in the place of `awoke.Admin`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from awoke.admin import PartitionInfo, TopicInfo
from awoke.errors import AuthorizationFailed, KafkaError, UnknownTopic
from awoke.settings import Settings


class FakeAdmin:
    """A cluster with some topics; creating one fails with the error that is set."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.denied: set[str] = set()
        self.error: KafkaError | None = None
        self.created: list[tuple[str, int, Any]] = []
        self.waited_for: list[str] = []
        self.unknown: list[str] = []
        """Topics that a broker does not know yet."""
        self.looked_for_s = 0.0
        """How long a broker is asked again, the last time."""
        self.settings: Settings | None = None

    def __call__(self, settings: Settings) -> FakeAdmin:
        self.settings = settings
        return self

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def describe_topic(self, name: str, timeout_s: float) -> TopicInfo:
        if name in self.denied:
            raise AuthorizationFailed("denied", 29, "TOPIC_AUTHORIZATION_FAILED")
        if name not in self.partitions:
            raise UnknownTopic("gone", 3, "UNKNOWN_TOPIC_OR_PART")
        return TopicInfo(name, [PartitionInfo(number, 1, [1], [1]) for number in range(self.partitions[name])])

    def find_topic(self, name: str, timeout_s: float, new_within_s: float = 0.0) -> TopicInfo:
        self.looked_for_s = new_within_s
        return self.describe_topic(name, timeout_s)

    def find_topics(
        self, are_enough: Callable[[list[TopicInfo]], bool], timeout_s: float, new_within_s: float
    ) -> list[TopicInfo]:
        """Lists the topics until they are enough, or none is left that a broker does not know."""
        while not are_enough(found := self._topics(timeout_s)) and new_within_s > 0:
            pass
        return found

    def _topics(self, timeout_s: float) -> list[TopicInfo]:
        """Lists the topics; each call shows one that a broker has not known before."""
        self.partitions |= dict.fromkeys(self.unknown[:1], 1)
        del self.unknown[:1]
        return [self.describe_topic(name, timeout_s) for name in self.partitions]

    def create_topic(self, name: str, partitions: int, config: Any, timeout_s: float) -> None:
        if self.error is not None:
            raise self.error
        self.created.append((name, partitions, config))

    def wait_for_topic(self, name: str, timeout_s: float) -> None:
        self.waited_for.append(name)
