"""An app that counts the messages of each key in a table: run by the scenario of queries during rebalances."""

from __future__ import annotations

import os

import awoke

app = awoke.App(
    os.environ["TOTALS_APP"], kafka={"session.timeout.ms": 6000, "heartbeat.interval.ms": 300}, commit_interval_s=0.1
)
totals = app.table("totals", key=str, value=int)


@app.on(os.environ["TOTALS_TOPIC"], key=str, tables=[totals])
def count(message: awoke.Message[bytes, str]) -> None:
    """Counts a message."""
    totals[message.key] = totals.get(message.key, 0) + 1
