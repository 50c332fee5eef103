"""The values that administration returns and takes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias


class BrokerInfo(NamedTuple):
    """One broker."""

    id: int
    address: str


class PartitionInfo(NamedTuple):
    """One partition of a topic."""

    partition: int
    leader: int
    """The id of the broker that leads it; -1 when none does."""
    replicas: list[int]
    in_sync: list[int]


class TopicInfo(NamedTuple):
    """One topic."""

    name: str
    partitions: list[PartitionInfo]


class ConfigEntry(NamedTuple):
    """One setting of a topic or a broker."""

    name: str
    value: str | None
    """None where it is sensitive, or has no value."""
    source: str
    """`default`, `topic`, `broker` (its file), `dynamic broker`, `dynamic default broker`, `group` or `unknown`."""
    is_default: bool
    is_sensitive: bool
    is_read_only: bool


class GroupListing(NamedTuple):
    """One group."""

    name: str
    state: str
    """Kafka's word: `Stable`, `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Dead` or `Unknown`."""
    kind: str
    """`classic`, `consumer` (KIP-848) or `unknown`."""
    is_simple: bool
    """True if it has no protocol: it was only used to commit offsets."""


class MemberInfo(NamedTuple):
    """One member of a group."""

    id: str
    client_id: str
    host: str
    static_id: str | None
    """Its `group.instance.id`."""
    partitions: list[tuple[str, int]]
    """The topics and partitions that are assigned to it."""


class GroupInfo(NamedTuple):
    """One group with its members."""

    name: str
    state: str
    """As in `GroupListing`."""
    kind: str
    """As in `GroupListing`."""
    protocol: str
    """The name of its partition assignor; empty without members."""
    coordinator: BrokerInfo | None
    members: list[MemberInfo]


class Shift(NamedTuple):
    """Moves committed offsets by a number of messages: backward if it is negative."""

    by: int


ResetTo: TypeAlias = Literal["earliest", "latest"] | datetime | int | Shift
"""A target of committed offsets: an end, a time with its time zone, an offset, or a shift."""


class OffsetChange(NamedTuple):
    """A change of one committed offset, before it is made."""

    group: str
    topic: str
    partition: int
    before: int | None
    """The committed offset; None if there is none."""
    after: int
    start: int
    """The first offset that is not deleted."""
    end: int
    """The offset after the last message."""
    is_clamped: bool = False
    """True if the target lies outside of the log; `after` is the nearest offset in it."""


ResourceKind: TypeAlias = Literal["topic", "group", "cluster", "transactional_id", "unknown"]
Pattern: TypeAlias = Literal["literal", "prefixed", "unknown"]
Permission: TypeAlias = Literal["allow", "deny", "unknown"]
Operation: TypeAlias = Literal[
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster_action",
    "describe_configs",
    "alter_configs",
    "idempotent_write",
    "unknown",
]


class Acl(NamedTuple):
    """An access rule. `unknown` stands for a kind that this version does not know."""

    resource: ResourceKind
    name: str
    """The resource's name; `kafka-cluster` for the cluster, `*` for all."""
    principal: str
    """As in `User:billing`."""
    operation: Operation
    permission: Permission = "allow"
    pattern: Pattern = "literal"
    host: str = "*"


class AclFilter(NamedTuple):
    """Selects ACLs; None selects any."""

    resource: ResourceKind | None = None
    name: str | None = None
    principal: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None
    pattern: Pattern | Literal["match"] | None = None
    """`match` selects the ACLs that apply to a resource of this name, prefixed ones and `*` too."""
    host: str | None = None


EVERY_ACL = AclFilter()
"""Selects all ACLs."""
