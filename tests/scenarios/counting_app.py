"""An app that writes down what it has processed: run by the restart scenarios in processes of its own.

For each batch it appends one line `partition first last` to the file of `COUNTING_LOG` after its work is done. With
`COUNTING_PARTITIONS` it reads these, without a group.
One system call writes the line, so that a kill leaves no half line.
"""

from __future__ import annotations

import os

import awoke

app = awoke.App("counting")
named = [int(each) for each in os.environ.get("COUNTING_PARTITIONS", "").split()] or None
log = os.open(os.environ["COUNTING_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.consumer(os.environ["COUNTING_TOPIC"], batch=awoke.Batching(max_messages=1_000), partitions=named)
class Counting(awoke.Consumer):
    """Counts the messages of one partition."""

    def consume(self, batch: awoke.Batch[bytes]) -> None:
        """Write down which offsets have been processed."""
        offsets = batch.offsets()
        assert offsets == list(range(offsets[0], offsets[-1] + 1))
        os.write(log, f"{self.partition} {offsets[0]} {offsets[-1]}\n".encode())
