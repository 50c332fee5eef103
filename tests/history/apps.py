"""The app whose members copy the input to the output; its mode is in the environment."""

from __future__ import annotations

import os

import awoke

MODE = os.environ["HISTORY_MODE"]
INPUT, OUTPUT = os.environ["HISTORY_INPUT"], os.environ["HISTORY_OUTPUT"]
JOBS = 16
"""Messages of a partition at once, in the modes with lanes."""

app = awoke.App("history")


def copy(message: awoke.Message[bytes]) -> bytes:
    """The value as it is."""
    return message.value


async def copy_async(message: awoke.Message[bytes]) -> bytes:
    """The value as it is."""
    return message.value


class Copying(awoke.Consumer):
    """Copies whole batches."""

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        """Produce each message; the batch is done when all are acknowledged."""
        sent = [app.producer.produce(OUTPUT, message.value, key=message.key) for message in batch]
        awoke.wait_all(sent, 60)


if MODE == "batch":
    app.consumer(INPUT)(Copying)
elif MODE == "lanes-async":
    app.on(INPUT, output=OUTPUT, concurrency=awoke.by_key(JOBS))(copy_async)
elif MODE == "lanes":
    app.on(INPUT, output=OUTPUT, concurrency=awoke.by_key(JOBS))(copy)
else:
    app.on(INPUT, output=OUTPUT, exactly_once=MODE == "exactly-once")(copy)
