"""The transactions that keep messages from the groups of the app."""

from __future__ import annotations

import msgspec

from awoke.console.open_transactions import TRANSACTION_MS, open_of
from awoke.console.web.page import Asked, Page, Rows


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
    """`open`, or `slow` where it is open for long."""


class TransactionsPage(msgspec.Struct, kw_only=True):
    """All open transactions, the oldest first."""

    problem: str | None
    transactions: Rows[TransactionRow]


def transactions(asked: Asked) -> TransactionsPage:
    """Returns the open transactions that keep messages from the groups."""
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
                state="slow" if now.view.at_ms - found.since_ms > TRANSACTION_MS else "open",
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


PAGES = [Page("/transactions", "Transactions", transactions, "transactions.html", section="Work")]
