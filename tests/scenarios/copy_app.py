"""An app that copies one topic to another, exactly once: run by a scenario in processes of its own, which it kills."""

from __future__ import annotations

import os

import awoke

app = awoke.App("copy", transaction_records_max=750)

CONCURRENCY = {"partition": None, "by_key": awoke.by_key(16)}[os.environ.get("COPY_BY", "partition")]


@app.on(
    os.environ["COPY_FROM"],
    output=os.environ["COPY_TO"],
    exactly_once=True,
    batch=awoke.Batching(max_messages=250),
    flow=awoke.Flow(per_s=float(os.environ.get("COPY_PER_S", "5000"))),
    retry=awoke.Retry(backoff_s=(0.01, 0.1)),
    concurrency=CONCURRENCY,
)
def copy(message: awoke.Message[bytes]) -> bytes:
    """The value as it is; the first try fails now and then."""
    if message.offset % 1_000 == 17 and message.attempt == 1:
        raise RuntimeError("the first time")
    return message.value
