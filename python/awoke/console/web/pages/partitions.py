"""The partitions of the app with their lag, the lanes and failing messages of each, and the jobs that run."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from awoke.console.stuck import SLOW_MS, TRANSACTION_MS
from awoke.console.views import Failing, Lane, Partition, Reason, Report, Running
from awoke.console.web.page import Asked, Missing, Page, Rows
from awoke.console.web.snapshot import Snapshot

Place = tuple[str, str, int]
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
    left_s: float | None = None
    """The time in which the lag is gone at this speed."""


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


class TransactionRow(msgspec.Struct, kw_only=True):
    """An open transaction that keeps the last stable offset of a partition behind its end."""

    node: str
    """The process that sees it; another app may have begun it."""
    group: str
    topic: str
    partition: int
    since_ms: int
    """When this process first saw it."""
    last_stable_offset: int | None
    waiting: int | None
    """The messages from there to the end, which this group can't read yet."""
    state: str
    """`open`, or `slow` where it is open for long."""


class TransactionsPage(msgspec.Struct, kw_only=True):
    """All open transactions, the oldest first."""

    problem: str | None
    transactions: Rows[TransactionRow]


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
    if any(now_ms - each.since_ms > SLOW_MS for each in at.running):
        return "slow"
    return "working" if at.running or at.in_flight else "idle"


def assigned(now: Snapshot) -> dict[Place, tuple[Report, Partition]]:
    """Returns the partitions that processes have, each with the newest report of it."""
    found: dict[Place, tuple[Report, Partition]] = {}
    for report in sorted(now.live.values(), key=lambda each: each.at_ms):
        for each in report.partitions:
            found[each.group, each.topic, each.partition] = (report, each)
    return found


def rows_of(now: Snapshot) -> Iterator[PartitionRow]:
    """Yields a row for each partition that a process has or the brokers know of a group."""
    known = {(group.group, each.topic, each.partition): each for group in now.view.groups for each in group.partitions}
    owners = assigned(now)
    for place in sorted({*known, *owners}):
        broker, (report, at) = known.get(place), owners.get(place, (None, None))
        row = PartitionRow(group=place[0], topic=place[1], partition=place[2], state="unassigned")
        if report is not None and at is not None:
            row.state, row.node = state_of(at, now.view.at_ms), report.node
            row.position, row.committed, row.end_offset = at.position, at.committed, at.end_offset
            row.in_flight, row.lanes, row.failing = at.in_flight, len(at.running), len(at.failing)
            row.offsets_per_s = at.offsets_per_s
        if broker is not None:
            row.committed, row.end_offset = broker.committed, broker.end_offset
        if row.committed is not None and row.end_offset is not None:
            row.lag = max(0, row.end_offset - row.committed)
            if row.offsets_per_s:
                row.left_s = row.lag / row.offsets_per_s
        yield row


def partitions(asked: Asked) -> PartitionsPage:
    """Returns all partitions, or those of one state."""
    now, state = asked.snapshot(), asked.query.get("state", "")
    rows = list(rows_of(now))
    states: dict[str, int] = {}
    for each in rows:
        states[each.state] = states.get(each.state, 0) + 1
    columns = {
        "partition": lambda each: (each.topic, each.partition, each.group),
        "state": lambda each: each.state,
        "lag": lambda each: each.lag,
        "in_flight": lambda each: each.in_flight,
        "lanes": lambda each: each.lanes,
        "failing": lambda each: each.failing,
        "rate": lambda each: each.offsets_per_s,
        "node": lambda each: each.node,
    }
    wanted = [each for each in rows if not state or each.state == state]
    table = asked.rows(
        wanted, "partition", columns, text=lambda each: f"{each.topic}[{each.partition}] {each.group} {each.node}"
    )
    return PartitionsPage(problem=now.problem, state=state, states=dict(sorted(states.items())), partitions=table)


def partition(asked: Asked) -> PartitionPage:
    """Returns one partition."""
    now = asked.snapshot()
    number = asked.path["partition"]
    place = (asked.path["group"], asked.path["topic"], int(number) if number.isdecimal() and len(number) < 10 else -1)
    row = next((each for each in rows_of(now) if (each.group, each.topic, each.partition) == place), None)
    if row is None:
        raise Missing(f"no process has {place[1]}[{number}] of group {place[0]}, and no offset of it is committed")
    report, at = assigned(now).get(place, (None, None))
    lanes = [] if at is None else at.lanes()
    return PartitionPage(
        row=row,
        oldest_offset=None if at is None else at.oldest_offset,
        paused_because=None if at is None else at.paused_because,
        stuck_because=None if at is None else at.stuck_because,
        failing=[] if at is None else at.failing,
        running=[] if at is None else sorted(at.running, key=lambda each: each.since_ms),
        lanes=lanes[:LANES],
        lanes_total=len(lanes),
        last_stable_offset=None if at is None else at.last_stable_offset,
        transaction_open_since_ms=None if at is None else at.transaction_open_since_ms,
        has_room=at is None or at.has_room,
        commit_gap=None if at is None else at.commit_gap,
        commit_gap_max=None if at is None else at.commit_gap_max,
        reasons=[each for each in now.view.reasons if (each.group, each.topic, each.partition) == place],
        commands=[] if report is None else report.commands,
    )


def jobs(asked: Asked) -> JobsPage:
    """Returns the running jobs."""
    now = asked.snapshot()
    reports = list(now.live.values())
    rows = [
        JobRow(
            node=report.node,
            group=at.group,
            topic=at.topic,
            partition=at.partition,
            offset=each.offset,
            attempt=each.attempt,
            remaining=each.remaining,
            since_ms=each.since_ms,
            state="slow" if now.view.at_ms - each.since_ms > SLOW_MS else "running",
        )
        for report in reports
        for at in report.partitions
        for each in at.running
    ]
    columns = {
        "age": lambda each: -each.since_ms,
        "partition": lambda each: (each.topic, each.partition, each.offset),
        "attempt": lambda each: each.attempt,
        "remaining": lambda each: each.remaining,
        "node": lambda each: each.node,
    }
    table = asked.rows(
        rows, "age", columns, is_descending=True, text=lambda each: f"{each.topic}[{each.partition}] {each.node}"
    )
    return JobsPage(jobs=table, failing=sum(len(at.failing) for report in reports for at in report.partitions))


def transactions(asked: Asked) -> TransactionsPage:
    """Returns the open transactions that keep messages from the groups."""
    now = asked.snapshot()
    rows = []
    for report, at in assigned(now).values():
        since_ms, stable, end = at.transaction_open_since_ms, at.last_stable_offset, at.end_offset
        if since_ms is not None:
            row = TransactionRow(
                node=report.node,
                group=at.group,
                topic=at.topic,
                partition=at.partition,
                since_ms=since_ms,
                last_stable_offset=stable,
                waiting=None if stable is None or end is None else max(0, end - stable),
                state="slow" if now.view.at_ms - since_ms > TRANSACTION_MS else "open",
            )
            rows.append(row)
    columns = {
        "age": lambda each: -each.since_ms,
        "partition": lambda each: (each.topic, each.partition, each.group),
        "waiting": lambda each: each.waiting,
        "node": lambda each: each.node,
    }
    table = asked.rows(
        rows, "age", columns, is_descending=True, text=lambda each: f"{each.topic}[{each.partition}] {each.group}"
    )
    return TransactionsPage(problem=now.problem, transactions=table)


PAGES = [
    Page("/partitions", "Partitions and lanes", partitions, "partitions.html", section="Work"),
    Page("/partitions/{topic}/{partition}/{group:path}", "Partition", partition, "partition.html"),
    Page("/jobs", "Running jobs", jobs, "jobs.html", section="Work"),
    Page("/transactions", "Transactions", transactions, "transactions.html", section="Work"),
]
