"""Events of the consumer group: assignments, commits, paused and stuck partitions."""

from __future__ import annotations

import logging
from typing import ClassVar

from awoke.observe.events.event import Counter, Event

__all__ = [
    "CommitFailed",
    "FetchFailure",
    "GroupShared",
    "GroupUnowned",
    "GroupWaiting",
    "JobOverdue",
    "OffsetsCommitted",
    "OffsetsNotCommitted",
    "PartitionCareful",
    "PartitionPaused",
    "PartitionResumed",
    "PartitionRewound",
    "PartitionStuck",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
]

REBALANCES = Counter(
    "awoke_rebalances_total", "Changes of assignment: assigned, revoked or lost.", {"change": "change"}
)
OVERDUE = Counter(
    "awoke_overdue_jobs_total",
    "Jobs beyond max_processing_s (slow) or a revocation (revoked).",
    {"reason": "reason"},
)


class GroupWaiting(Event, frozen=True, kw_only=True):
    """The group has assigned nothing for 3 s; `text` says why."""

    name: ClassVar[str] = "group.waiting"
    usual_level: ClassVar[int] = logging.INFO
    advice: ClassVar[str] = "wait, or set `instance_id`"
    group: str
    text: str


class GroupUnowned(Event, frozen=True, kw_only=True):
    """No member of the group owns these partitions, though an assignment has stood for a session time-out."""

    name: ClassVar[str] = "group.unowned"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "expect a rebalance, which awoke asks for; if it does not help, restart a member"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_unowned_partitions_total", "Partitions that were found without an owner.", {"group": "group"}
    )
    group: str = ""
    client: str
    partitions: list[tuple[str, int]]

    @property
    def increment(self) -> int:
        """One for each partition."""
        return len(self.partitions)


class GroupShared(Event, frozen=True, kw_only=True):
    """Members of the group belong to another app, or read `topics` that this app does not read.

    `apps` are the names of other apps: they take a part of the messages. `topics` are told when the assignment has
    stood for `max.poll.interval.ms`, because an update of an app changes its topics, too.
    """

    name: ClassVar[str] = "group.shared"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "give each app a group of its own; nothing, if it is another version of the app"
    group: str = ""
    client: str
    apps: list[str]
    topics: list[str]


class PartitionsChanged(Event, frozen=True, kw_only=True):
    """The base of `partitions.assigned`, `partitions.revoked` and `partitions.lost`."""

    change: ClassVar[str]
    counter: ClassVar[Counter | None] = REBALANCES
    group: str = ""
    client: str
    partitions: list[tuple[str, int]]

    @property
    def log_level(self) -> int:
        """DEBUG for a rebalance that changes nothing for this member, as most do."""
        return self.usual_level if self.partitions else logging.DEBUG


class PartitionsAssigned(PartitionsChanged, frozen=True, kw_only=True):
    """Partitions are assigned; debug where there are none."""

    name: ClassVar[str] = "partitions.assigned"
    usual_level: ClassVar[int] = logging.INFO
    change: ClassVar[str] = "assigned"


class PartitionsRevoked(PartitionsChanged, frozen=True, kw_only=True):
    """Partitions are revoked in a rebalance; debug where there are none."""

    name: ClassVar[str] = "partitions.revoked"
    usual_level: ClassVar[int] = logging.INFO
    change: ClassVar[str] = "revoked"


class PartitionsLost(PartitionsChanged, frozen=True, kw_only=True):
    """The group took partitions away: this member was silent for too long."""

    name: ClassVar[str] = "partitions.lost"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "look for a blocked process, or a `session.timeout.ms` that is too short"
    change: ClassVar[str] = "lost"


class JobOverdue(Event, frozen=True, kw_only=True):
    """A job still ran when its partition had to be revoked; its messages come again elsewhere."""

    name: ClassVar[str] = "job.overdue"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "make it faster, or raise `revoke_timeout_s`"
    counter: ClassVar[Counter | None] = OVERDUE
    reason: ClassVar[str] = "revoked"
    group: str = ""
    client: str
    partitions: list[tuple[str, int]]

    @property
    def increment(self) -> int:
        """One for each partition."""
        return len(self.partitions)


class OffsetsCommitted(Event, frozen=True, kw_only=True):
    """The brokers hold these offsets: (topic, partition, next offset)."""

    name: ClassVar[str] = "offsets.committed"
    group: str = ""
    client: str
    offsets: list[tuple[str, int, int]]


class CommitFailed(Event, frozen=True, kw_only=True):
    """The brokers refused a commit; info where it is tried again."""

    name: ClassVar[str] = "commit.failed"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "nothing while `will_retry`"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_commit_failures_total", "Commits that the brokers refused.", {"code": "code_name"}
    )
    group: str = ""
    client: str
    partitions: list[tuple[str, int]]
    code: int
    code_name: str
    will_retry: bool

    @property
    def log_level(self) -> int:
        """INFO for a commit that is tried again, as in each rebalance that comes during a commit."""
        return logging.INFO if self.will_retry else self.usual_level


class OffsetsNotCommitted(Event, frozen=True, kw_only=True):
    """The last commit of a stop failed.

    `places` says from which offset messages come again, `messages` how many, None if not known.
    """

    name: ClassVar[str] = "offsets.not_committed"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "expect repeated messages; look for brokers that were away"
    group: str = ""
    places: str
    messages: int | None


class PartitionPaused(Event, frozen=True, kw_only=True):
    """A message was exhausted on a route with `on_exhausted="pause"`, or its dead letter was refused."""

    name: ClassVar[str] = "partition.paused"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "remove the cause, then `awoke resume`"
    group: str = ""
    topic: str
    partition: int
    error: BaseException


class PartitionResumed(Event, frozen=True, kw_only=True):
    """A partition was resumed."""

    name: ClassVar[str] = "partition.resumed"
    usual_level: ClassVar[int] = logging.INFO
    group: str = ""
    topic: str
    partition: int


class PartitionStuck(Event, frozen=True, kw_only=True):
    """Messages of a partition do not come any more."""

    name: ClassVar[str] = "partition.stuck"
    usual_level: ClassVar[int] = logging.ERROR
    advice: ClassVar[str] = "see `text`; `awoke resume` reads it from its first message"
    group: str = ""
    client: str
    topic: str
    partition: int
    code: int
    code_name: str
    text: str


class PartitionRewound(Event, frozen=True, kw_only=True):
    """The log of a partition went back: it was truncated, or the topic was created again."""

    name: ClassVar[str] = "partition.rewound"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "expect that messages are missing"
    counter: ClassVar[Counter | None] = Counter(
        "awoke_rewinds_total",
        "Partitions whose log went back: truncated, or the topic created again.",
        {"topic": "topic"},
    )
    group: str = ""
    client: str
    topic: str
    partition: int
    from_offset: int
    to_offset: int
    reason: str


class PartitionCareful(Event, frozen=True, kw_only=True):
    """A process died before its first commit, `deaths` times at this message.

    Messages before `until_offset` are processed one by one, each with a commit, to find the message that kills its
    process (see [failures](handlers.md#failures)).
    """

    name: ClassVar[str] = "partition.careful"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "look for the cause of the death; it is slower until then"
    group: str = ""
    handler: str
    topic: str
    partition: int
    offset: int
    deaths: int
    until_offset: int
    text: str


class FetchFailure(Event, frozen=True, kw_only=True):
    """A partition could not be fetched."""

    name: ClassVar[str] = "fetch.failed"
    usual_level: ClassVar[int] = logging.WARNING
    advice: ClassVar[str] = "see `text`; it is tried again"
    group: str = ""
    client: str
    topic: str
    partition: int
    code: int
    code_name: str
    text: str
