"""An app of the scenarios: it declares two topics, whose names and numbers the environment says."""

from __future__ import annotations

import os

import awoke

app = awoke.App("declared")
orders = app.topic(
    os.environ.get("ORDERS", "orders"),
    partitions=int(os.environ.get("PARTITIONS", "3")),
    replication=1,
    config={"cleanup.policy": "compact"},
)
audit = app.topic(os.environ.get("AUDIT", "audit"), partitions=2)


@app.on(orders, output=audit)
def copy(message: awoke.Message[bytes]) -> bytes:
    """Copies a message."""
    return message.value
