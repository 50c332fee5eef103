"""Tables: the rows, the size, the owner and the restore of each partition. Rows are shown as the changelog has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from awoke.console.views import Report, TablePartition
from awoke.console.web.page import Asked, Page, Rows

RESTORED, RESTORING = "restored", "restoring"


class TableRow(msgspec.Struct, kw_only=True):
    """A partition of a table, as the process that has it reports it."""

    table: str
    partition: int
    topic: str
    """The changelog."""
    state: str
    """`restored` or `restoring`."""
    rows: int
    size_bytes: int
    memory_bytes: int
    node: str


class TablesPage(msgspec.Struct, kw_only=True):
    """All tables."""

    problem: str | None
    rows: int
    size_bytes: int
    memory_bytes: int
    states: dict[str, int]
    """The number of partitions in each state."""
    changelogs: list[str]
    partitions: Rows[TableRow]


def tables(asked: Asked) -> TablesPage:
    """Returns the partitions of all tables."""
    now = asked.snapshot()
    found = rows_of(now.live.values())
    columns: dict[str, Callable[[TableRow], object]] = {
        "table": lambda each: (each.table, each.partition),
        "state": lambda each: each.state,
        "rows": lambda each: each.rows,
        "bytes": lambda each: each.size_bytes,
        "memory": lambda each: each.memory_bytes,
        "node": lambda each: each.node,
    }
    return TablesPage(
        problem=now.problem,
        rows=sum(each.rows for each in found),
        size_bytes=sum(each.size_bytes for each in found),
        memory_bytes=sum(each.memory_bytes for each in found),
        states=dict(Counter(each.state for each in found)),
        changelogs=sorted({each.topic for each in found}),
        partitions=asked.rows(found, "table", columns, text=lambda each: f"{each.table} {each.topic} {each.node}"),
    )


def rows_of(reports: Iterable[Report]) -> list[TableRow]:
    """Returns a row for each partition. If two processes report one, the one whose report is younger has it."""
    latest: dict[tuple[str, int], tuple[int, str, TablePartition]] = {}
    for report in reports:
        for each in report.tables:
            before = latest.get((each.table, each.partition))
            if before is None or before[0] < report.at_ms:
                latest[each.table, each.partition] = (report.at_ms, report.node, each)
    return [
        TableRow(
            table=each.table,
            partition=each.partition,
            topic=each.topic,
            state=RESTORED if each.is_restored else RESTORING,
            rows=each.rows,
            size_bytes=each.size_bytes,
            memory_bytes=each.memory_bytes,
            node=node,
        )
        for _, node, each in latest.values()
    ]


PAGES = [Page("/tables", "Tables", tables, "tables.html", section="Work")]
