"""The transactions that keep messages from the groups of the app."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from awoke.console.open_transactions import TRANSACTION_MS, OpenTransaction, open_of
from awoke.console.views import AppView, Report
from awoke.console.web.page import Asked, Page, Rows

ABORTED_MAX = 100
"""The most rows of aborted transactions."""


class TransactionRow(msgspec.Struct, kw_only=True):
    """An open transaction that keeps the last stable offset of a partition behind its end."""

    node: str | None
    """The process that has the partition; another app may have begun the transaction."""
    group: str
    topic: str
    partition: int
    since_ms: int
    """When a process or this console first saw it."""
    last_stable_offset: int
    waiting: int
    """The messages from there to the end, which this group can't read yet."""
    state: str
    """`open`; `slow` where it is open for long; `hanging` where the brokers should have aborted it."""


class AbortedRow(msgspec.Struct, kw_only=True):
    """The transactions of one process that were aborted for one reason."""

    node: str
    code: str
    count: int
    last_ms: int
    last_text: str


class TransactionsPage(msgspec.Struct, kw_only=True):
    """All open transactions, the oldest first, and those that were aborted."""

    problem: str | None
    limit_ms: int
    """The brokers abort a transaction after this time at the latest."""
    aborted: list[AbortedRow]
    """The last one first."""
    aborted_total: int
    transactions: Rows[TransactionRow]


def transactions(asked: Asked) -> TransactionsPage:
    """Returns the open transactions that keep messages from the groups, and those of the app that were aborted."""
    now = asked.snapshot()
    rows, none = [], (None, None)
    for place in now.places:
        report, at = now.assigned.get(place, none)
        found = open_of(at, now.known.get(place))
        if found is not None and found.since_ms is not None:
            group, topic, partition = place
            row = TransactionRow(
                node=None if report is None else report.node,
                group=group,
                topic=topic,
                partition=partition,
                since_ms=found.since_ms,
                last_stable_offset=found.stable,
                waiting=found.waiting,
                state=state_of(found, now.view),
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
    aborted = [row for node, report in now.live.items() for row in aborted_rows(node, report)]
    return TransactionsPage(
        problem=now.problem,
        limit_ms=now.view.transaction_limit_ms,
        aborted=sorted(aborted, key=lambda each: -each.last_ms)[:ABORTED_MAX],
        aborted_total=sum(each.count for each in aborted),
        transactions=table,
    )


def state_of(found: OpenTransaction, view: AppView) -> str:
    """Returns the state of an open transaction."""
    if found.is_hanging(view.at_ms, view.transaction_limit_ms):
        return "hanging"
    return "slow" if found.since_ms is not None and view.at_ms - found.since_ms > TRANSACTION_MS else "open"


def aborted_rows(node: str, report: Report) -> Iterator[AbortedRow]:
    """Yields the aborted transactions of a process by reason."""
    for each in report.aborted:
        yield AbortedRow(node=node, code=each.code, count=each.count, last_ms=each.last_ms, last_text=each.last_text)


PAGES = [Page("/transactions", "Transactions", transactions, "transactions.html", section="Work")]
