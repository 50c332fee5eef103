"""The view models of topics and consumer groups."""

from __future__ import annotations

import msgspec


class Risk(msgspec.Struct, kw_only=True):
    """A danger for the messages of a topic, or for those who produce to it."""

    kind: str
    severity: int
    """The risks with a higher number come first."""
    text: str
    advice: str
    partitions: list[int] = []


class TopicRow(msgspec.Struct, kw_only=True):
    """A topic in the list of all."""

    name: str
    partitions: int
    replicas: int
    """Of the partition that has the fewest."""
    is_internal: bool
    """True if its name begins with two underscores, as those of Kafka's and awoke's own topics do."""
    risks: list[Risk]
    """As far as the replicas alone tell, the most severe first."""


class BrokerView(msgspec.Struct, kw_only=True):
    """A broker."""

    id: int
    address: str
    leads: int
    """The partitions that it leads."""
    replicas: int
    """The partitions of which it has a replica."""


class TopicsView(msgspec.Struct, kw_only=True):
    """A page of the topics of a cluster."""

    brokers: list[BrokerView]
    topics: list[TopicRow]
    total: int
    """The topics that were selected; `topics` has those of the page."""
    at: int
    """The number of the page's first topic, from 0."""


class TopicPartition(msgspec.Struct, kw_only=True):
    """A partition of a topic; None for what could not be asked."""

    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    start: int | None = None
    end: int | None = None

    @property
    def offsets(self) -> int | None:
        """The number of its offsets; it has as many messages at most."""
        return None if self.start is None or self.end is None else self.end - self.start


class ConfigView(msgspec.Struct, kw_only=True):
    """A setting of a topic."""

    name: str
    value: str | None
    """None where it is sensitive."""
    source: str
    is_default: bool
    is_sensitive: bool
    is_read_only: bool


class TopicView(msgspec.Struct, kw_only=True):
    """One topic."""

    name: str
    partitions: list[TopicPartition]
    offsets: int | None
    """The offsets of all partitions; None where one could not be asked."""
    configs: list[ConfigView]
    """Those that are not the defaults first."""
    risks: list[Risk]
    notes: list[str] = []
    """Parts that could not be asked, and why."""


class NewTopic(msgspec.Struct, kw_only=True, frozen=True):
    """A topic to be created; None takes the brokers' default."""

    name: str
    partitions: int | None = None
    replicas: int | None = None
    config: dict[str, str] = {}


class ConfigChange(msgspec.Struct, kw_only=True):
    """A change of one setting; None is the default."""

    name: str
    before: str | None
    after: str | None


class GroupRow(msgspec.Struct, kw_only=True):
    """A consumer group in the list of all."""

    name: str
    state: str
    kind: str
    is_simple: bool
    """True if it was only used to commit offsets."""


class GroupsView(msgspec.Struct, kw_only=True):
    """A page of the consumer groups of a cluster."""

    groups: list[GroupRow]
    total: int
    at: int


class MemberView(msgspec.Struct, kw_only=True):
    """A member of a group."""

    id: str
    client_id: str
    host: str
    static_id: str | None
    partitions: int


class GroupPlace(msgspec.Struct, kw_only=True):
    """A partition that a group reads; None for what is not there, or could not be asked."""

    topic: str
    partition: int
    committed: int | None
    start: int | None
    stable: int | None
    """The last stable offset: read-committed members read up to it, an open transaction holds it back."""
    end: int | None
    lag: int | None
    """The offsets up to the end that are not committed."""
    stable_lag: int | None
    """Those of them that a read-committed member can read now."""
    member: str | None
    client_id: str | None
    note: str | None = None
    """A fact that an operator must know: messages were deleted unread, or an open transaction is ahead."""


class GroupDetail(msgspec.Struct, kw_only=True):
    """One consumer group."""

    name: str
    state: str
    kind: str
    protocol: str
    coordinator: str | None
    lag: int | None
    """Of all partitions with a committed offset; None where they are too many to be asked at once."""
    members: list[MemberView]
    places: list[GroupPlace]


class ResetChange(msgspec.Struct, kw_only=True):
    """The change of one committed offset."""

    topic: str
    partition: int
    before: int | None
    after: int
    start: int
    end: int
    is_clamped: bool
    again: int
    """The offsets that are read again."""
    skipped: int
    """The offsets that are never read."""


class ResetPreview(msgspec.Struct, kw_only=True):
    """A reset of a group's offsets, before it is made."""

    group: str
    target: str
    changes: list[ResetChange]
    unchanged: int
    again: int
    skipped: int
    refused_because: str | None
    """The reason why it can't be made now; None if it can."""
    digest: str
    """The same for the same changes: who confirms them names it."""
