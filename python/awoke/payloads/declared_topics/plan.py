"""The plan of `awoke topics`: all differences between declared topics and a cluster, and the changes that end them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from awoke.errors import AwokeError, KafkaError, OperationTimeout, UnknownTopic
from awoke.payloads.declared_topics.declaration import Declaration
from awoke.payloads.declared_topics.differences import (
    ChangesTopics,
    DescribesTopics,
    SettingsDiffer,
    TopicCluster,
    TopicDifference,
    TopicMissing,
    numbers_that_differ,
    settings_that_differ,
)
from awoke.payloads.topics import Topic


class Unread(NamedTuple):
    """A topic whose settings could not be compared."""

    topic: str
    error: AwokeError


class TopicPlan(NamedTuple):
    """The differences of all topics of an app, in the order of their names."""

    differences: tuple[TopicDifference, ...]
    unread: tuple[Unread, ...] = ()

    @property
    def changes(self) -> tuple[TopicDifference, ...]:
        """The differences that `apply` ends."""
        return tuple(each for each in self.differences if each.is_made)

    @property
    def notes(self) -> tuple[str, ...]:
        """The facts that an operator must know before the plan is applied."""
        unread = (f"{topic}: its settings can't be compared: {error}" for topic, error in self.unread)
        return (*(each.note for each in self.differences if each.note is not None), *unread)


UNDECLARED = Declaration(None, None, {})
"""Declares a topic that routes name and nothing describes: it must exist, and brokers choose the rest."""


def plan_of(cluster: TopicCluster, topics: Mapping[str, Topic], named: Collection[str] = ()) -> TopicPlan:
    """Compares declared topics with a cluster, and looks for those that are only named. Blocks.

    Raises:
        KafkaError: The brokers do not describe a topic. OperationTimeout: They do not answer.
    """
    differences: list[TopicDifference] = []
    unread: list[Unread] = []
    for name in sorted({*topics, *named}):
        declaration = (topics[name].declaration if name in topics else None) or UNDECLARED
        try:
            found = cluster.describe_topic(name)
        except UnknownTopic:
            differences.append(TopicMissing(topic=name, declaration=declaration))
            continue
        differences += numbers_that_differ(name, declaration, found)
        settings = compared_settings(cluster, name, declaration.config)
        if isinstance(settings, Unread):
            unread.append(settings)
        else:
            differences += settings
    return TopicPlan(tuple(differences), tuple(unread))


def compared_settings(cluster: DescribesTopics, topic: str, config: Mapping[str, str]) -> list[SettingsDiffer] | Unread:
    """Compares the settings of a topic, if it declares some; returns the reason if that is not possible. Blocks."""
    if not config:
        return []
    try:
        return list(settings_that_differ(topic, config, cluster.describe_configs(topic)))
    except (KafkaError, OperationTimeout) as error:
        return Unread(topic, error)


def apply(plan: TopicPlan, cluster: ChangesTopics) -> Iterator[str]:
    """Makes the changes of a plan in order, and yields a sentence after each. Blocks.

    Raises:
        AwokeError: A change failed; says which, and how many were made before. Those after it were not tried.
    """
    for number, each in enumerate(plan.changes):
        try:
            yield each.make(cluster)
        except AwokeError as error:
            made = f"{number} of {len(plan.changes)} changes were made before"
            raise AwokeError(f"{error}; {made}; correct this, and apply again: it makes the rest") from error
