"""The partitions of the app with their lag, the lanes and failing messages of each, and the jobs that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from awoke.console.lag_trends import Place, left_s
from awoke.console.open_transactions import open_of
from awoke.console.stuck import SLOW_MS
from awoke.console.views import Failing, GroupPartition, Lane, Partition, Reason, Report, Running
from awoke.console.web.page import Asked, NoSuchPage, Page, Rows
from awoke.console.web.snapshot import Snapshot

LANES = 200
"""The most lanes of a partition that its page shows."""


class PartitionRow(msgspec.Struct, kw_only=True):
    """A partition of a group; None for what is not known."""

    group: str
    topic: str
    partition: int
    state: str
    """`stuck`, `paused`, `failing`, `slow`, `working` or `idle`; `unassigned` where no process has it."""
    node: str | None = None
    position: int | None = None
    committed: int | None = None
    end_offset: int | None = None
    lag: int | None = None
    in_flight: int = 0
    lanes: int = 0
    """Running jobs."""
    failing: int = 0
    offsets_per_s: float | None = None
    lag_per_s: float | None = None
    """By how much the lag grows in a second, or falls (less than 0), as the brokers told within the last minute."""
    left_s: float | None = None
    """The time in which a lag that falls is gone."""


class PartitionsPage(msgspec.Struct, kw_only=True):
    """All partitions."""

    problem: str | None
    state: str
    states: dict[str, int]
    """The number of partitions in each state."""
    partitions: Rows[PartitionRow]


class PartitionPage(msgspec.Struct, kw_only=True):
    """One partition: what keeps its commit back, and when each waiting thing goes on."""

    row: PartitionRow
    oldest_offset: int | None
    """The message that keeps the commit back."""
    paused_because: str | None
    stuck_because: str | None
    failing: list[Failing]
    running: list[Running]
    lanes: list[Lane]
    """The first of them by offset: keys under way, and keys that wait."""
    lanes_total: int
    last_stable_offset: int | None
    transaction_open_since_ms: int | None
    has_room: bool
    """False: no further messages are taken in."""
    commit_gap: int | None
    commit_gap_max: int | None
    reasons: list[Reason]
    commands: list[str]
    """The commands that its process takes."""


class JobRow(msgspec.Struct, kw_only=True):
    """A job that runs."""

    node: str
    group: str
    topic: str
    partition: int
    offset: int
    attempt: int
    remaining: int
    since_ms: int
    state: str


class JobsPage(msgspec.Struct, kw_only=True):
    """All running jobs, the longest first."""

    jobs: Rows[JobRow]
    failing: int


def state_of(at: Partition, now_ms: int) -> str:
    """Returns the state of an assigned partition, the worst that is true."""
    if at.stuck_because is not None:
        return "stuck"
    if at.paused_because is not None:
        return "paused"
    if at.failing:
        return "failing"
    for each in at.running:
        if now_ms - each.since_ms > SLOW_MS:
            return "slow"
    return "working" if at.running or at.in_flight else "idle"


class SeenPartition(msgspec.Struct, gc=False):
    """A partition of a group: as the process that has it sees it, and as the brokers do."""

    place: Place
    report: Report | None
    at: Partition | None
    broker: GroupPartition | None
    state: str
    lag_per_s: float | None = None

    @property
    def committed(self) -> int | None:
        """The offset that the brokers know, or else the process."""
        return self.broker.committed if self.broker is not None else self.at.committed if self.at is not None else None

    @property
    def end_offset(self) -> int | None:
        """The end that the brokers know, or else the process."""
        return (
            self.broker.end_offset if self.broker is not None else self.at.end_offset if self.at is not None else None
        )

    @property
    def lag(self) -> int | None:
        """The messages that are not committed."""
        committed, end = self.committed, self.end_offset
        return None if committed is None or end is None else max(0, end - committed)

    @property
    def text(self) -> str:
        """The text in which a filter looks."""
        group, topic, partition = self.place
        return f"{topic}[{partition}] {group} {None if self.report is None else self.report.node}"

    def row(self) -> PartitionRow:
        """Returns the partition as it is shown."""
        group, topic, partition = self.place
        row = PartitionRow(group=group, topic=topic, partition=partition, state=self.state)
        row.committed, row.end_offset, row.lag = self.committed, self.end_offset, self.lag
        row.lag_per_s, row.left_s = self.lag_per_s, left_s(row.lag, self.lag_per_s)
        if self.report is not None and self.at is not None:
            at = self.at
            row.node, row.position = self.report.node, at.position
            row.in_flight, row.lanes, row.failing = at.in_flight, len(at.running), len(at.failing)
            row.offsets_per_s = at.offsets_per_s
        return row


def seen(now: Snapshot, places: Iterable[Place]) -> list[SeenPartition]:
    """Returns partitions of a snapshot."""
    assigned, known, now_ms, none = now.assigned, now.known, now.view.at_ms, (None, None)
    found = []
    for place in places:
        report, at = assigned.get(place, none)
        state = "unassigned" if at is None else state_of(at, now_ms)
        found.append(SeenPartition(place, report, at, known.get(place), state, now.lag_per_s.get(place)))
    return found


COLUMNS: dict[str, Callable[[SeenPartition], Any] | None] = {
    "partition": None,
    "state": lambda each: each.state,
    "lag": lambda each: each.lag,
    "trend": lambda each: each.lag_per_s,
    "in_flight": lambda each: 0 if each.at is None else each.at.in_flight,
    "lanes": lambda each: 0 if each.at is None else len(each.at.running),
    "failing": lambda each: 0 if each.at is None else len(each.at.failing),
    "rate": lambda each: None if each.at is None else each.at.offsets_per_s,
    "node": lambda each: None if each.report is None else each.report.node,
}


def partitions(asked: Asked) -> PartitionsPage:
    """Returns all partitions, or those of one state."""
    now, state = asked.snapshot(), asked.query.get("state", "")
    found = seen(now, now.places)
    states = Counter(each.state for each in found)
    wanted = [each for each in found if each.state == state] if state else found
    table = asked.rows(wanted, "partition", COLUMNS, text=lambda each: each.text)
    return PartitionsPage(
        problem=now.problem,
        state=state,
        states=dict(sorted(states.items())),
        partitions=table.shown_as(SeenPartition.row),
    )


def partition(asked: Asked) -> PartitionPage:
    """Returns one partition."""
    now = asked.snapshot()
    number = asked.path["partition"]
    place = (asked.path["group"], asked.path["topic"], int(number) if number.isdecimal() and len(number) < 10 else -1)
    if place not in now.assigned and place not in now.known:
        raise NoSuchPage(f"no process has {place[1]}[{number}] of group {place[0]}, and no offset of it is committed")
    (found,) = seen(now, [place])
    report, at = found.report, found.at
    lanes, opened = [] if at is None else at.lanes(), open_of(at, found.broker)
    return PartitionPage(
        row=found.row(),
        oldest_offset=None if at is None else at.oldest_offset,
        paused_because=None if at is None else at.paused_because,
        stuck_because=None if at is None else at.stuck_because,
        failing=[] if at is None else at.failing,
        running=[] if at is None else sorted(at.running, key=lambda each: each.since_ms),
        lanes=lanes[:LANES],
        lanes_total=len(lanes),
        last_stable_offset=opened.stable if opened is not None else None if at is None else at.last_stable_offset,
        transaction_open_since_ms=None if opened is None else opened.since_ms,
        has_room=at is None or at.has_room,
        commit_gap=None if at is None else at.commit_gap,
        commit_gap_max=None if at is None else at.commit_gap_max,
        reasons=[each for each in now.view.reasons if (each.group, each.topic, each.partition) == place],
        commands=[] if report is None else report.commands,
    )


Job = tuple[Report, Partition, Running]
JOB_COLUMNS: dict[str, Callable[[Job], Any]] = {
    "age": lambda row: -row[2].since_ms,
    "partition": lambda row: (row[1].topic, row[1].partition, row[2].offset),
    "attempt": lambda row: row[2].attempt,
    "remaining": lambda row: row[2].remaining,
    "node": lambda row: row[0].node,
}


def job_text(row: Job) -> str:
    """Returns the text in which a filter looks."""
    report, at, _ = row
    return f"{at.topic}[{at.partition}] {report.node}"


def job_row(report: Report, at: Partition, running: Running, now_ms: int) -> JobRow:
    """Returns a job as it is shown."""
    return JobRow(
        node=report.node,
        group=at.group,
        topic=at.topic,
        partition=at.partition,
        offset=running.offset,
        attempt=running.attempt,
        remaining=running.remaining,
        since_ms=running.since_ms,
        state="slow" if now_ms - running.since_ms > SLOW_MS else "running",
    )


def jobs(asked: Asked) -> JobsPage:
    """Returns the running jobs."""
    now = asked.snapshot()
    reports = list(now.live.values())
    rows = [(report, at, each) for report in reports for at in report.partitions for each in at.running]
    table = asked.rows(rows, "age", JOB_COLUMNS, is_descending=True, text=job_text)
    shown = table.shown_as(lambda row: job_row(*row, now.view.at_ms))
    return JobsPage(jobs=shown, failing=sum(len(at.failing) for report in reports for at in report.partitions))


PAGES = [
    Page("/partitions", "Partitions and lanes", partitions, "partitions.html", section="Work"),
    Page("/partitions/{topic}/{partition}/{group:path}", "Partition", partition, "partition.html"),
    Page("/jobs", "Running jobs", jobs, "jobs.html", section="Work"),
]
