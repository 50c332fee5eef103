"""The app whose members copy the input to the output; its mode and its topics are in the environment."""

from __future__ import annotations

import os
import zlib

import awoke
from tests.history.settings import INPUT, SLOW_S
from tests.support.waiting import awork_for, work_for

MODE, OUTPUT = os.environ["HISTORY_MODE"], os.environ["HISTORY_OUTPUT"]
SOURCE = awoke.pattern(os.environ["HISTORY_PATTERN"]) if "HISTORY_PATTERN" in os.environ else INPUT
NAMED = [int(partition) for partition in os.environ.get("HISTORY_PARTITIONS", "").split()] or None
JOBS = 16
"""Messages of a partition at once, in the modes with lanes."""
SLOW_EVERY = 2_000
"""Of as many messages, one is slow."""

app = awoke.App("history")


def is_slow(value: bytes) -> bool:
    """Tells whether a message takes long: always the same ones."""
    return zlib.crc32(value) % SLOW_EVERY == 0


def copy(message: awoke.Message[bytes]) -> bytes:
    """The value as it is."""
    if is_slow(message.value):
        work_for(SLOW_S)
    return message.value


async def copy_async(message: awoke.Message[bytes]) -> bytes:
    """The value as it is."""
    if is_slow(message.value):
        await awork_for(SLOW_S)
    return message.value


class Copying(awoke.Consumer):
    """Copies whole batches."""

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        """Produce each message; the batch is done when all are acknowledged."""
        sent = [app.producer.produce(OUTPUT, copy(message), key=message.key) for message in batch]
        awoke.wait_all(sent, 60)


if MODE == "batch":
    app.consumer(SOURCE, partitions=NAMED)(Copying)
elif MODE == "lanes-async":
    app.on(SOURCE, output=OUTPUT, concurrency=awoke.by_key(JOBS), partitions=NAMED)(copy_async)
elif MODE == "lanes":
    app.on(SOURCE, output=OUTPUT, concurrency=awoke.by_key(JOBS), partitions=NAMED)(copy)
else:
    app.on(SOURCE, output=OUTPUT, exactly_once=MODE == "exactly-once", partitions=NAMED)(copy)
