"""The view models of the console: reports, error records, and the state of an app that is made of them.

Reports and error records have a version. Readers keep fields that they do not know. A report of a later major version
is shown as that of a newer node. Views of which an app has thousands are left out of garbage collections (`gc=False`):
they refer to text and to other views only.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from awoke.operate.commands.views import MAJOR, MINOR, Audit, SwarmNode
from awoke.text.records import Integer, Moment, Name, Number, Text, decode

INTERVAL_MS = 10_000
"""A process without changes reports after this time."""

Interval = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]


class Failing(msgspec.Struct, kw_only=True, gc=False):
    """A message that has failed and is tried again."""

    offset: Integer
    key_hash: str | None
    """The same for all messages of a key, which it does not show."""
    attempts: Integer
    error: str
    since_ms: Moment
    """When it failed first; times are milliseconds since 1970."""
    next_ms: Moment
    """When it is tried again."""


class Running(msgspec.Struct, kw_only=True, gc=False):
    """A job that runs."""

    offset: Integer
    """Its first message that is not done."""
    attempt: Integer
    remaining: Integer
    """Its messages that are not done."""
    since_ms: Moment
    """When that message was first seen at work: it began earlier, by one report at most."""
    key_hash: str | None = None
    """Of a lane's key; None for a partition without lanes."""


class Lane(msgspec.Struct, kw_only=True, gc=False):
    """The messages of one key of one partition that are under way."""

    key_hash: str | None
    offset: Integer
    """Its first message that is not done."""
    attempt: Integer
    is_running: bool
    """False: it waits for its next attempt."""
    since_ms: Moment
    """When its first message failed first, or was first seen at work."""
    next_ms: Moment | None = None
    """When it is tried again."""
    error: str | None = None
    keeps_commit_back: bool = False
    """True for the lane with the oldest message that is not done."""


class Partition(msgspec.Struct, kw_only=True, gc=False):
    """An assigned partition, as the engine of its process sees it; None for what is not known."""

    group: str
    topic: str
    partition: Integer
    position: Integer | None = None
    committed: Integer | None = None
    end_offset: Integer | None = None
    """One past the last message, as the last fetch saw it."""
    in_flight: Integer = 0
    offsets_per_s: Number | None = None
    """The speed of `position`, since the report's last sample."""
    oldest_offset: Integer | None = None
    """The message that keeps the commit back; None where none does."""
    paused_because: str | None = None
    stuck_because: str | None = None
    failing: list[Failing] = []
    running: list[Running] = []
    """Where a route has concurrency, each job is a lane under way."""
    last_stable_offset: Integer | None = None
    """Messages from here on belong to an open transaction, or come after its first message."""
    transaction_open_since_ms: Moment | None = None
    """Since when, by this process, an open transaction keeps the last stable offset behind the end; None: none does."""
    read_offset: Integer | None = None
    """One past the last message that was handed on, if none waits; markers of transactions count."""
    has_room: bool = True
    """False: no further messages are taken in: as many as allowed are under way, or it is paused."""
    commit_gap: Integer | None = None
    """The messages from the first that is not done to the last that was begun; None without lanes."""
    commit_gap_max: Integer | None = None

    def lanes(self) -> list[Lane]:
        """Returns the lanes under way and those that wait, by offset."""
        found = {
            each.offset: Lane(
                key_hash=each.key_hash,
                offset=each.offset,
                attempt=each.attempts,
                is_running=False,
                since_ms=each.since_ms,
                next_ms=each.next_ms,
                error=each.error,
            )
            for each in self.failing
        }
        for job in self.running:
            failed = found.get(job.offset)
            found[job.offset] = Lane(
                key_hash=job.key_hash or (None if failed is None else failed.key_hash),
                offset=job.offset,
                attempt=job.attempt,
                is_running=True,
                since_ms=job.since_ms if failed is None else failed.since_ms,
                error=None if failed is None else failed.error,
            )
        for offset, lane in found.items():
            lane.keeps_commit_back = offset == self.oldest_offset
        return [found[offset] for offset in sorted(found)]


class Handler(msgspec.Struct, kw_only=True):
    """A route of the app in one process."""

    name: str
    group: str
    topic: str
    is_async: bool
    concurrency: Integer
    """The jobs of one partition that run at once, at most."""
    exactly_once: bool
    dead_letter: str | None
    output: str | None = None
    """The topic of what it returns."""
    messages_per_s: Number | None = None
    """Since the last sample; None while that is not known."""
    failures: Integer = 0
    """Since the start."""


class SecretFields(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The secret fields of the keys, or the values, of a topic: their names and no values."""

    topic: str
    """A name, or a regular expression."""
    is_pattern: bool = False
    part: str = "value"
    """`value` or `key`."""
    form: str = "json"
    """`json`, `registry`, or any other: then a program without the app's types shows nothing of it."""
    fields: tuple[str, ...] = ()
    """The paths that each document has, as in `/card/number`."""
    optional: tuple[str, ...] = ()
    """The paths that a document may have."""
    same: tuple[tuple[str, str], ...] = ()
    """Pairs of paths: what is at the first has the secrets of what is at the second."""


class SettingView(msgspec.Struct, kw_only=True):
    """A setting that is not its default, or a property of librdkafka's. A secret value is hidden."""

    name: str
    value: str
    origin: str
    """As in `environment`, `argument`, or the name of a file."""


class CallTimes(msgspec.Struct, kw_only=True):
    """The last calls of a method: a time of theirs, in milliseconds."""

    p50: Number | None
    p95: Number | None


class MethodCalls(msgspec.Struct, kw_only=True):
    """A method of the app in one process, once it was called."""

    method: str
    """Empty for calls of methods that the app does not have."""
    outcomes: dict[str, Integer]
    """The number of calls since the start by their end: `ok`, `cached`, or the code of an error."""
    queue_ms: CallTimes
    """From the call to its being received."""
    run_ms: CallTimes
    reply_ms: CallTimes
    """From the reply to its acknowledgement."""


class CallAtWork(msgspec.Struct, kw_only=True):
    """A call whose method runs."""

    method: str
    caller: str
    """By its own word."""
    partition: Integer
    offset: Integer
    until_ms: Integer
    """Its deadline."""
    is_cancelled: bool


class Calls(msgspec.Struct, kw_only=True):
    """The remote calls that one process answers."""

    methods: list[MethodCalls]
    at_work: list[CallAtWork]
    """A limited number of them, those that began first in front."""
    running: Integer
    waiting: Integer
    """For a thread, a task or their method."""
    expired: Integer
    """Skipped since the start, because their deadline had passed."""
    rejected: dict[str, Integer]
    """Not executed since the start, by reason."""


class CallerCounts(msgspec.Struct, kw_only=True):
    """The calls that one process makes to a service."""

    service: str
    open: Integer
    """Calls that have not ended."""
    events: dict[str, Integer]
    """Since the start: calls begun and expired; replies, and those that were not taken, by reason."""


class Sample(msgspec.Struct, array_like=True, gc=False):
    """The progress since the sample before, and the state at its end."""

    at_ms: Moment
    offsets: Integer
    """By how much the positions have advanced."""
    failures: Integer
    lag: Integer
    memory_bytes: Integer


class History(msgspec.Struct, kw_only=True):
    """The last hour of a process, the oldest sample first."""

    of_5_s: list[Sample] = []
    of_minutes: list[Sample] = []


class Memory(msgspec.Struct, kw_only=True, gc=False):
    """The resident memory of a process: its own, and what it shares with others, as with the nodes of its swarm."""

    own_bytes: Integer
    """Of no other process: what its end would free (USS)."""
    shared_bytes: Integer
    """Also of other processes: code, and what nodes have from the mold that they were forked from."""
    proportional_bytes: Integer
    """Its own, and its share of each shared page (PSS). The sum over processes counts each page once."""


class OutputTopic(msgspec.Struct, kw_only=True, gc=False):
    """A topic to which this process sends, and that keeps it waiting."""

    topic: str
    messages: Integer
    """Those that wait."""
    since_ms: Moment | None
    """Since when no message was acknowledged, as statistics of librdkafka tell it; None: some are, but the queue of the
    producer is full."""


class BlockedPartition(msgspec.Struct, kw_only=True, gc=False):
    """A partition to which this process sends, and that acknowledges nothing."""

    topic: str
    partition: int
    """-1 if its topic's partitions are not known."""
    messages: int
    """Those that waited when it was found."""
    since_ms: int
    text: str
    """The cause, as far as it is known."""


class SharedGroup(msgspec.Struct, kw_only=True, gc=False):
    """A group that members of another app have joined, as this process has found."""

    group: str
    apps: list[str]
    """Their names: a limited number of them."""
    topics: list[str]
    """Topics of other members that this app does not read: a limited number of them."""


class UnownedPartitions(msgspec.Struct, kw_only=True, gc=False):
    """Partitions that no member of a group owns, as this process has found."""

    group: str
    partitions: list[tuple[str, Integer]]
    """A limited number of them."""
    total: Integer


class TablePartition(msgspec.Struct, kw_only=True, gc=False):
    """The rows of a partition of a table that this process has."""

    table: str
    topic: str
    """The changelog."""
    partition: Integer
    rows: Integer
    size_bytes: Integer
    """The bytes of all keys and values."""
    memory_bytes: Integer
    is_restored: bool
    """False: its rows are being read from the changelog, and its messages wait."""


class AbortedByCode(msgspec.Struct, kw_only=True, gc=False):
    """The transactions of this process that were aborted for one reason."""

    code: str
    """The name of the error, as in `PRODUCER_FENCED`."""
    count: Integer
    """Since the start."""
    last_ms: Moment
    last_text: str


class Report(msgspec.Struct, kw_only=True, gc=False):
    """The state of one process."""

    major: Integer
    minor: Integer
    node: str
    app: str
    host: str
    pid: Integer
    number: Integer | None = None
    """The node's number in a swarm."""
    started_at_ms: Moment
    at_ms: Moment
    sequence: Integer
    interval_ms: Interval = INTERVAL_MS
    """The next report comes within this time."""
    state: str
    """`running`, `quiet` or `stopping`."""
    groups: list[str]
    not_ready_because: str | None = None
    brokers_away_because: str | None = None
    unhealthy_because: list[str] = []
    memory_bytes: Integer = 0
    memory: Memory | None = None
    """Read once a minute; None where the system does not tell it."""
    threads: dict[str, Integer] = {}
    """The number of threads by owner."""
    queued_messages: Integer = 0
    queued_bytes: Integer = 0
    """Of the app's producer, without a delivery report."""
    queue_full_since_ms: Moment | None = None
    """Since when, as each look found it, this queue has no room; None: it has."""
    outputs: list[OutputTopic] = []
    """Topics that keep it waiting, first those of which nothing is acknowledged."""
    aborted: list[AbortedByCode] = []
    """The transactions that were aborted since the start, by reason."""
    failures: Integer = 0
    """Failures of user code since the start."""
    errors_dropped: Integer = 0
    """Failures without an error record, because there were too many."""
    versions: dict[str, str] = {}
    settings: dict[str, str] = {}
    """Those that are not the defaults, without secrets."""
    commands: list[str] = []
    """The commands that it takes from a console."""
    handlers: list[Handler] = []
    secrets: list[SecretFields] | None = None
    """All secret fields that the app declares; None if the process does not tell them."""
    calls: Calls | None = None
    """None of an app without methods."""
    callers: list[CallerCounts] = []
    explained: list[SettingView] = []
    """The settings with their origins."""
    supervisor_pid: Integer | None = None
    """Of a swarm."""
    swarm: list[SwarmNode] = []
    """All nodes of the swarm on this host, as their supervisor last said."""
    is_cut: bool = False
    """True: partitions, their details or the history were left out, because the report was too large."""
    unowned: list[UnownedPartitions] = []
    """Since minor 7."""
    blocked: list[BlockedPartition] = []
    """Since minor 8, as `shared`."""
    shared: list[SharedGroup] = []
    tables: list[TablePartition] = []
    """A limited number of them, those that are being restored first. Since minor 9."""
    partitions: list[Partition] = []
    partitions_total: Integer = 0
    """The assigned partitions; a report has a limited number of them."""
    history: History = msgspec.field(default_factory=History)


class ErrorRecord(msgspec.Struct, kw_only=True, gc=False):
    """One failure of user code."""

    major: Integer
    minor: Integer
    at_ms: Moment
    node: Name
    app: Name
    event: Name
    """The name of its event, as in `job.failed`."""
    fingerprint: Name
    """The same for failures of one exception class at one place of the code."""
    error_type: Name
    error_text: Text
    traceback: Text
    handler: Name | None = None
    topic: Name | None = None
    partition: Integer | None = None
    offset: Integer | None = None
    key_hash: Name | None = None
    attempt: Integer | None = None
    retry_in_s: Number | None = None


class NodeView(msgspec.Struct, kw_only=True):
    """The last report of one process."""

    node: str
    at_ms: Moment
    is_newer: bool
    """True: its awoke is newer than this one, whose reader does not understand the report."""
    is_silent: bool
    """True: it has sent nothing for three intervals, and has not stopped in order."""
    is_overdue: bool = False
    """True: its next report should have come, and it has not stopped in order."""
    heard_ms: Moment | None = None
    """When this console got the report, by its own clock; None of one that was there before the console."""
    interval_ms: Interval = INTERVAL_MS
    """The time within which its next report was to come."""
    document: msgspec.Raw
    """The report as it was sent, with fields that this version does not know."""

    def unheard_ms(self, now_ms: int) -> int:
        """Returns the time since its report: by the clock of this console, or else by that of the process."""
        return now_ms - (self.at_ms if self.heard_ms is None else self.heard_ms)

    def state_of(self, report: Report) -> str:
        """Returns the state of its process, as far as it is known: that of its report, `overdue` or `silent`."""
        return "silent" if self.is_silent else "overdue" if self.is_overdue else report.state

    def report(self) -> Report | None:
        """Returns the report; None where the node is newer."""
        return None if self.is_newer else decode(self.document, Report)


class GroupPartition(msgspec.Struct, kw_only=True, gc=False):
    """A partition of a consumer group, as the brokers see it; None for what is not there."""

    topic: str
    partition: Integer
    committed: Integer | None
    end_offset: Integer | None
    lag: Integer | None
    last_stable_offset: Integer | None = None
    """Messages from here on belong to an open transaction, or come after it; not asked where all is committed."""
    transaction_open_since_ms: Moment | None = None
    """Since when, as this console saw it, an open transaction keeps the last stable offset behind the end."""


class GroupView(msgspec.Struct, kw_only=True):
    """A consumer group of the app, as the brokers see it."""

    group: str
    state: str
    members: Integer
    partitions: list[GroupPartition]


class ErrorView(msgspec.Struct, kw_only=True, gc=False):
    """The failures of one fingerprint among the last that were read."""

    fingerprint: str
    count: Integer
    first_ms: Moment
    last: ErrorRecord


class Reason(msgspec.Struct, kw_only=True, gc=False):
    """A reason why messages are not processed, and what to do."""

    kind: str
    severity: Integer
    """The reasons with a higher number come first."""
    text: str
    advice: str
    group: str | None = None
    topic: str | None = None
    partition: Integer | None = None
    node: str | None = None


class AppView(msgspec.Struct, kw_only=True):
    """The state of an app at one time."""

    major: Integer = MAJOR
    minor: Integer = MINOR
    app: str
    at_ms: Moment
    nodes: list[NodeView]
    groups: list[GroupView]
    errors: list[ErrorView]
    transaction_limit_ms: Moment = 900_000
    """The brokers abort a transaction after this time at the latest, unless it hangs."""
    unreadable: Integer = 0
    """Records of the topics that are no reports and no error records."""
    reasons: list[Reason] = []
    """The most severe first."""
    audit: list[Audit] = []
    """The last commands, the newest first."""
