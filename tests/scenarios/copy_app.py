"""An app that copies one topic to another, exactly once: run by a scenario in processes of its own, which it kills."""

from __future__ import annotations

import os

import awoke

app = awoke.App("copy", transaction_records_max=750)

counts = app.table("counts", key=int, value=int)
"""The number of messages of each key."""
TABLES = [counts] if os.environ.get("COPY_COUNTS") else []

CONCURRENCY = {"partition": None, "by_key": awoke.by_key(16)}[os.environ.get("COPY_BY", "partition")]


@app.on(
    os.environ["COPY_FROM"],
    output=os.environ["COPY_TO"],
    exactly_once=True,
    batch=awoke.Batching(max_messages=250),
    flow=awoke.Flow(per_s=float(os.environ.get("COPY_PER_S", "5000"))),
    retry=awoke.Retry(backoff_s=(0.01, 0.1)),
    concurrency=CONCURRENCY,
    tables=TABLES,
)
def copy(message: awoke.Message[bytes]) -> bytes:
    """The value as it is; the first try fails now and then, and leaves no row."""
    if TABLES:
        key = int(message.key or b"")
        counts[key] = counts.get(key, 0) + 1
    if message.offset % 1_000 == 17 and message.attempt == 1:
        raise RuntimeError("the first time")
    return message.value
