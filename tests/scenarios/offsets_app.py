"""The examples with offsets outside Kafka, on the test's own topic: run by a scenario that kills its processes."""

from __future__ import annotations

import importlib
import os

import awoke

example = importlib.import_module(f"examples.offsets.{os.environ['OFFSETS_EXAMPLE']}")

app = awoke.App("ledger", group=os.environ["OFFSETS_GROUP"], instance_id="one", commit_interval_s=0.1)
app.on_startup(example.create_tables)
# Small batches: many transactions, and a kill in one of them.
app.consumer(
    os.environ["OFFSETS_TOPIC"],
    value=example.Payment,
    own_thread=os.environ["OFFSETS_EXAMPLE"] == "sqlite_app",
    batch=awoke.Batching(max_messages=10),
)(example.Ledger)
